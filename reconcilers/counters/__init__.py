"""The error of a counter that users change meanwhile. Pure."""
