"""What may be written now: pauses, pilots, holds, breakers, the ceiling, the gate. Pure."""
