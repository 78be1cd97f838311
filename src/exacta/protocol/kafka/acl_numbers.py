"""The numbers of access rules' words in Kafka's requests (KIP-140, KIP-290, KIP-373, KIP-939), by Kafka's words."""

from typing import Final

ANY: Final = 1
"""The number that a filter has where it means every word."""
RESOURCE_TYPES: Final = {"Topic": 2, "Group": 3, "Cluster": 4, "TransactionalId": 5, "DelegationToken": 6, "User": 7}
MATCH: Final = 2
"""The pattern of a filter that means all rules which apply to a name."""
PATTERN_TYPES: Final = {"Literal": 3, "Prefixed": 4}
OPERATIONS: Final = {
    "All": 2,
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Delete": 6,
    "Alter": 7,
    "Describe": 8,
    "ClusterAction": 9,
    "DescribeConfigs": 10,
    "AlterConfigs": 11,
    "IdempotentWrite": 12,
    "CreateTokens": 13,
    "DescribeTokens": 14,
    "TwoPhaseCommit": 15,
}
PERMISSIONS: Final = {"Deny": 2, "Allow": 3}
