"""The rules of Apache Pulsar's subscriptions: which messages are acknowledged, and which wait for a transaction."""
