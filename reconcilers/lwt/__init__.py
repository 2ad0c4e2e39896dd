"""The cost of lightweight transactions. Pure."""
