"""The commands that compare again: sweep, replay, bookmark."""
