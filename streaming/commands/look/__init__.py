"""The commands that only read: status, report, explain."""
