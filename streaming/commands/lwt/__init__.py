"""``reconcile lwt-report``: what lightweight transactions cost. No other room uses this one."""
