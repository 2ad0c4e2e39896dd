"""Everything again: whole tables, or events that were read before. Only suspects are handed over.

What is looked at here goes through the stream's own glance and look, and what differs through its
delay, re-check, breakers and guard.
"""
