"""Conformance: real Kafka clients judge the broker. One set of scenarios, one small adapter per client library."""
