"""All that knows Spark, Kafka and the Cassandra driver: the effects around the pure core."""
