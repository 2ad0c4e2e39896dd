"""What may be written now: pauses, pilots, breakers, clocks."""
