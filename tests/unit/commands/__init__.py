"""The commands, one by one, and the settings."""
