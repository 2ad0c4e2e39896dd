"""By how much a counter is wrong, while users go on writing. Pure."""
