"""Counters and quotas."""
