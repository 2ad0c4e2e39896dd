"""``reconcile mailboxes``: conflicts of mailbox objects, and their fix while James is offline."""
