"""What may be written now: pauses, pilots, holds, breakers, the gate. Pure."""
