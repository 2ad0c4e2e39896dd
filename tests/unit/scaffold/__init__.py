"""What the project is built and tried with: demo, simulated mail, house rules."""
