"""Mutants: small faults planted in the product, to see whether the fast tests notice.

`make mutants` runs it; docs/mutants.md says what it does and what it found.
"""
