"""Rows of a projection: compare, confirm, plan, write, and what becomes of a finding."""
