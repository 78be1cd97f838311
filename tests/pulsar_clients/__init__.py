"""Scenarios by Pulsar's own clients; each is a fact about Apache Pulsar before it is one about Exacta.

`EXACTA_TEST_PULSAR=pulsar://host:port` runs them on an Apache Pulsar, everything else on Exacta. `make test`
runs those in Python, and `make test-with WHAT=pulsar` those in Java (`test_java_*.py`), too.
"""
