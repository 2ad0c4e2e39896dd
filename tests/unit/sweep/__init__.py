"""Sweeps and replays."""
