"""Pulsar's clients: they write into the topics of the Kafka clients, and read them.

Messages are sent and read by Pulsar's own client for Python (`sending.py`, `watching.py`). It has no transactions, so
that these are made by frames (`side.py`, `transacting.py`), also those that span a Kafka producer (`joint.py`).
"""
