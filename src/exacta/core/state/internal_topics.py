"""The topics that belong to the cluster, by the names that Apache Kafka gives them (decision 0029).

Clients look for them, and take what lies in them for the cluster's own. Here nothing does: groups and transactions are
state of the core. So they are ordinary topics, into which nobody writes.
"""

GROUP_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"

INTERNAL_TOPICS = frozenset({GROUP_OFFSETS, TRANSACTION_STATE})
