"""A mail server that writes to James's tables as James does, with planted faults."""
