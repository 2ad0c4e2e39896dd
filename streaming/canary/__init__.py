"""Canaries: proof that every change up to a moment has been captured and looked at.

::

    writer ──one row a node and second──▶ Cassandra ──agent──▶ the topic ──slice──▶ watch
                                                                                     │
              counters wait for it; metrics show its age ◀── the frontier ◀──────────┘
"""
