"""How the reconciler and the servers it needs are started."""
