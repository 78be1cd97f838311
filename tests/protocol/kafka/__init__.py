"""Tests of `exacta.protocol.kafka`."""
