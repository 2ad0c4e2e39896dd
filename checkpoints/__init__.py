"""The state that survives a crash: journal, lineage, bookmarks, lease, expiries, counts."""
