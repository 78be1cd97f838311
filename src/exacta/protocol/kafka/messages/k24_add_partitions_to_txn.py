"""AddPartitionsToTxn (key 24): add partitions to a transaction.

KIP-98; KIP-890 batches between brokers.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int16, Int32, Int64, Message, Schema, String, Structure


class AddPartitionsToTxnTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class AddPartitionsToTxnTransaction(Structure, kw_only=True):
    transactional_id: Annotated[str, String("4+")] = ""
    producer_id: Annotated[int, Int64("4+")] = 0
    producer_epoch: Annotated[int, Int16("4+")] = 0
    verify_only: Annotated[bool, Bool("4+")] = False
    topics: Annotated[list[AddPartitionsToTxnTopic], Array("4+")] = EMPTY


class AddPartitionsToTxnRequest(Message, kw_only=True):
    """Request of AddPartitionsToTxn."""

    SCHEMA: ClassVar[Schema] = Schema(key=24, versions="0-5", flexible="3+")

    transactions: Annotated[list[AddPartitionsToTxnTransaction], Array("4+")] = EMPTY
    v3_and_below_transactional_id: Annotated[str, String("0-3")] = ""
    v3_and_below_producer_id: Annotated[int, Int64("0-3")] = 0
    v3_and_below_producer_epoch: Annotated[int, Int16("0-3")] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], Array("0-3")] = EMPTY


class AddPartitionsToTxnPartitionResult(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    partition_error_code: Annotated[int, Int16("0+")] = 0


class AddPartitionsToTxnTopicResult(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    results_by_partition: Annotated[list[AddPartitionsToTxnPartitionResult], Array("0+")] = EMPTY


class AddPartitionsToTxnResult(Structure, kw_only=True):
    transactional_id: Annotated[str, String("4+")] = ""
    topic_results: Annotated[list[AddPartitionsToTxnTopicResult], Array("4+")] = EMPTY


class AddPartitionsToTxnResponse(Message, kw_only=True):
    """Response of AddPartitionsToTxn."""

    SCHEMA: ClassVar[Schema] = Schema(key=24, versions="0-5", flexible="3+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("4+")] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], Array("4+")] = EMPTY
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], Array("0-3")] = EMPTY
