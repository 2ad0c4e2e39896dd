"""Tallies: counters that are corrected while users write.

::

    a batch settled ──▶ its mailboxes are due ──▶ glance: chunks against the counter
                                                     │ they differ
                                                     ▼
         K intervals on one side ◀── look, and wait for changes in flight
                    │
                    ▼
         recount against the truth ──▶ claim a round ──▶ journal ──▶ the delta, once

A thread beside the stream does this: a counter that cannot be read or written holds up nothing else
(promise 7). Due counters are in memory; chunks, rounds and the journal survive a crash.
"""
