"""A full comparison of every table, by code that shares nothing with the product."""
