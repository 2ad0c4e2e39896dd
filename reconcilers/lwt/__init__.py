"""What lightweight transactions cost. Pure."""
