"""Builds the parts of a stream, a sweep or a command from the settings."""
