"""Source and sink of `format("exacta")` beside Spark's own Kafka connector, on the same Apache Kafka and PySpark."""
