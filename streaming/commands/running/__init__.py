"""The processes that run for long, their threads, leases and signals."""
