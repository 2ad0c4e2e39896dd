"""Rows of a projection against the truth: compare, confirm, plan, a finding's life. Pure."""
