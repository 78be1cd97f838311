"""Several brokers in one world: what they share, what lies between, and the faults of both."""
