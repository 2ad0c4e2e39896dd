"""Reads what a person types on the command line."""
