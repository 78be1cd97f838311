"""Fetch: read records. Without sessions (KIP-227): session id 0 makes the client name its partitions each time."""

from exacta.core.rejections import Rejection
from exacta.engine.fetch import FetchPartition as Wanted
from exacta.engine.fetch import FetchRequest as WantedRequest
from exacta.engine.fetch import FetchResult
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.leader_epoch import leader_epoch_error
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k01_fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

KEY = ApiKey.FETCH
MIN_VERSION = 4
MAX_VERSION = 12
NEWER = "13 names topics by their ids (KIP-516), 15 to 18 are of followers and several brokers"
READ_COMMITTED = 1
LONGEST_WAIT_MS = 60_000
"""A client that waits longer is answered with nothing and asks again; its request does not outlive it for long."""


def handle(broker: BrokerContext, request: FetchRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all partitions from one state of the log (DESIGN D2)."""
    if request.session_id != 0:
        reply(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        return
    wanted: list[Wanted] = []
    asked: list[PartitionData] = []
    refused = False
    response = FetchResponse(responses=[])
    for topic in request.topics:
        partitions: list[PartitionData] = []
        for partition in topic.partitions:
            data = PartitionData(partition_index=partition.partition, high_watermark=-1, records=b"")
            data.error_code = leader_epoch_error(partition.current_leader_epoch)
            partitions.append(data)
            if data.error_code == ErrorCode.NONE:
                wanted.append(_wanted(topic.topic, partition))
                asked.append(data)
            else:
                refused = True
        response.responses.append(FetchableTopicResponse(topic=topic.topic, partitions=partitions))
    read_committed = request.isolation_level == READ_COMMITTED

    def done(results: list[FetchResult]) -> None:
        for data, result in zip(asked, results, strict=True):
            _fill(data, result, read_committed, context.version)
        reply(response)

    broker.fetch(
        context,
        WantedRequest(
            partitions=wanted,
            max_wait_ms=0 if refused else min(max(request.max_wait_ms, 0), LONGEST_WAIT_MS),
            min_bytes=max(request.min_bytes, 0),
            max_bytes=min(max(request.max_bytes, 0), broker.configuration.fetch_max_bytes),
            read_committed=read_committed,
        ),
        done,
    )


def _wanted(topic: str, partition: FetchPartition) -> Wanted:
    return Wanted(
        topic=topic,
        partition=partition.partition,
        fetch_offset=partition.fetch_offset,
        max_bytes=max(partition.partition_max_bytes, 0),
    )


def _fill(data: PartitionData, result: FetchResult, read_committed: bool, version: int) -> None:
    if result.rejection is not None:
        data.error_code = error_code(result.rejection, KEY, version)
        if result.rejection is not Rejection.OFFSET_OUT_OF_RANGE:
            return
    visible = result.visible
    assert visible is not None
    data.high_watermark = visible.high_watermark
    data.last_stable_offset = visible.last_stable_offset
    data.log_start_offset = visible.log_start_offset
    if read_committed:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in result.aborted
        ]
    if result.records:
        data.records = result.records
