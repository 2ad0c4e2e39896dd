"""What an installation declares: tables, projections, tallies, and the writes to them. Pure."""
