"""What is looked at again: sweep, replay, bookmarks."""
