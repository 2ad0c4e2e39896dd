"""What is only shown: status, explain."""
