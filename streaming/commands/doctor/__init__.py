"""``reconcile doctor``: checks the installation."""
