"""Pulsar's client for Go: its own tests, unmodified, against Exacta (`make test-with WHAT=pulsar-go`)."""
