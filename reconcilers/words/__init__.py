"""The words that everything else speaks: keys, kinds, waits, errors. Pure."""
