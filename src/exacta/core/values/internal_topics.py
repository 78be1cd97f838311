"""The topics that belong to the cluster, by the names that Apache Kafka gives them (decision 0029).

Clients look for these topics, and Apache Kafka keeps groups and transactions in them. Here groups and transactions are
state of the core. So these are ordinary topics into which nobody writes, and they hold no records.
"""

GROUP_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"

INTERNAL_TOPICS = frozenset({GROUP_OFFSETS, TRANSACTION_STATE})
