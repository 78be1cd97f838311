"""The bounds of Kafka's number types, by which options and configurations of topics are bounded."""

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)
