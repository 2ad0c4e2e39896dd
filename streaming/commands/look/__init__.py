"""The commands that only read: status, explain."""
