"""What a client may do, as bits of Kafka's numbers: without access rules everything that there is to do."""

OF_A_TOPIC = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Read, write, create, delete, alter, describe, and describe and alter configurations."""

OF_THE_CLUSTER = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""Create, alter, describe, cluster action, describe and alter configurations, idempotent write."""

NOT_ASKED_FOR = -0x8000_0000
