"""The parts of a stream, a sweep or a command, put together from the settings."""
