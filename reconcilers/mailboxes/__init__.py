"""Mailbox objects: `mailbox` and `mailboxpathv3` compared, and what an offline fix writes. Pure."""
