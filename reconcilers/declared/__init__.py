"""The declarations: tables, projections, tallies, and the writes to them. Pure."""
