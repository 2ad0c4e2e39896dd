"""What a person decides: findings, pauses, pilots."""
