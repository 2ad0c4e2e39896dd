"""Steps 1 and 2, the batch and the driver: all that knows Spark."""
