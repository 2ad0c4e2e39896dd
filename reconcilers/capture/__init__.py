"""What canaries prove about captured changes. Pure."""
