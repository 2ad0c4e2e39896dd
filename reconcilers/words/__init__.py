"""The vocabulary of the product: keys, kinds, waits, errors, exit codes. Pure."""
