"""The pure core: values in, values out. No clock, driver, Spark, environment or logging."""
