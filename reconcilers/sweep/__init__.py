"""Findings of a sweep that stand for many rows. Pure."""
