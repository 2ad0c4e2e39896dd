"""The long-running processes, with their threads, leases and signals."""
