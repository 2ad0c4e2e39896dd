"""What survives a crash: journal, lineage, bookmarks, lease, the checkpoint's fingerprint."""
