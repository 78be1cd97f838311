"""The largest values of Kafka's number types, by which options are bounded."""

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
