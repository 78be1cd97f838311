"""Spark's own Kafka connector, unchanged, against Exacta: run by `make test-with WHAT=spark-connector`."""
