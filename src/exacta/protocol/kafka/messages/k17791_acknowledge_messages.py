"""AcknowledgeMessages (key 17791): acknowledge messages of Apache Pulsar's subscriptions in a transaction.

Exacta's own; no Kafka has it. See docs/reference/acknowledge-messages.md.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Int64, Message, Schema, String, Structure


class Run(Structure, kw_only=True):
    first_offset: Annotated[int, Int64("0+")] = 0
    last_offset: Annotated[int, Int64("0+")] = 0


class PartitionToAcknowledge(Structure, kw_only=True):
    partition_id: Annotated[int, Int64("0+")] = 0
    runs: Annotated[list[Run], Array("0+")] = EMPTY


class SubscriptionToAcknowledge(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[PartitionToAcknowledge], Array("0+")] = EMPTY


class AcknowledgeMessagesRequest(Message, kw_only=True):
    """Request of AcknowledgeMessages."""

    SCHEMA: ClassVar[Schema] = Schema(key=17791, versions="0", flexible="0+")

    transaction_id: Annotated[int, Int64("0+")] = -1
    subscriptions: Annotated[list[SubscriptionToAcknowledge], Array("0+")] = EMPTY


class AcknowledgedPartition(Structure, kw_only=True):
    partition_id: Annotated[int, Int64("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class AcknowledgedSubscription(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[AcknowledgedPartition], Array("0+")] = EMPTY


class AcknowledgeMessagesResponse(Message, kw_only=True):
    """Response of AcknowledgeMessages."""

    SCHEMA: ClassVar[Schema] = Schema(key=17791, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    subscriptions: Annotated[list[AcknowledgedSubscription], Array("0+")] = EMPTY
