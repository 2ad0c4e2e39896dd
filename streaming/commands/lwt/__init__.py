"""``reconcile lwt-report``: what lightweight transactions cost. No other room imports this one."""
