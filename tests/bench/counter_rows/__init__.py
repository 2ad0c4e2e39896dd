"""Counters or rows: the same changes counted in several ways, measured, and disturbed.

`workload` makes the changes, `tables` and `stream` count them, `book` knows what they should add up
to, `race` measures, `disturbed` plants faults, `summary` and `plots` tell what came of it.
"""
