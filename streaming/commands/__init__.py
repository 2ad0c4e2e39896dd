"""The commands: one file a command, and the only place that puts parts together."""
