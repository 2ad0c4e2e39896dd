"""Tallies: counters that are kept right while users write.

::

    a batch settled ──▶ its mailboxes are due ──▶ glance: chunks against the counter
                                                     │ they differ
                                                     ▼
         K intervals on one side ◀── look, and wait for what may be under way
                    │
                    ▼
         recount against the truth ──▶ claim a round ──▶ journal ──▶ the delta, once

In a thread of its own beside the stream: a counter that cannot be read or written holds up nothing
else (promise 7). What is due is in memory; what must survive is in the chunks, the rounds and the
journal.
"""
