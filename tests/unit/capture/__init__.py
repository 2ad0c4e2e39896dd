"""What canaries prove of captured changes."""
