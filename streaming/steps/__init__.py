"""Steps 3 to 7 over ports: no Spark, driver, Kafka or settings."""
