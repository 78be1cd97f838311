"""A cluster of three brokers over a PostgreSQL, with faults of every kind, under the clients of `exacta verify`."""
