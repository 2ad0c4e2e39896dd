"""The state that survives a crash: journal, lineage, bookmarks, lease, expiries, counts.

`checkpoints.cassandra` implements the ports here, and `tests.fakes.checkpoints` has a fake of each;
one contract test runs against both.
"""
