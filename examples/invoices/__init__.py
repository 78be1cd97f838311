"""A service with confluent-kafka: an invoice for each order, once."""
