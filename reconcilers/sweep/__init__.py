"""What a sweep finds in many rows at once. Pure."""
