"""What survives a crash: the journal, lineage, bookmarks, the lease, the checkpoint's fingerprint."""
