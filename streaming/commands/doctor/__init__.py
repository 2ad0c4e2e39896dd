"""``reconcile doctor``: whether everything is as it must be."""
