"""What lightweight transactions cost."""
