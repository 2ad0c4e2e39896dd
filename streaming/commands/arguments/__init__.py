"""What a person types on the command line, read."""
