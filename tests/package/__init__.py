"""What is installed: the wheel, its units, its completion."""
