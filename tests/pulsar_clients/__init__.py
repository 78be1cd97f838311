"""Scenarios by Pulsar's own client for Java; each is a fact about Apache Pulsar before it is one about Exacta.

`EXACTA_TEST_PULSAR=pulsar://host:port` runs them on an Apache Pulsar, everything else on Exacta. `make test-pulsar`
runs them, and the README's example.
"""
