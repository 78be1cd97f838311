"""DeleteRecords over the wire: what readers, and those who ask for offsets, are told of what is gone."""

from typing import Any

import pytest

from exacta.protocol.kafka.codec import encode_request
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from exacta.protocol.kafka.messages.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from tests.kafka.recording import produce as produce_in_transaction
from tests.kafka.test_configs import SET, changes
from tests.kafka.test_topics import create
from tests.kafka.wire import Front, Wire, batch, front, produce, values_in

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


def delete(wire: Wire, *offsets: int, topic: str = "t", partition: int = 0, version: int = 2) -> list[tuple[int, int]]:
    """Delete before each offset, in one request; return error codes and low watermarks."""
    partitions = [DeleteRecordsPartition(partition_index=partition, offset=offset) for offset in offsets]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=partitions)])
    [answer] = wire.ask(request, version).topics
    assert answer.name == topic
    assert all(each.partition_index == partition for each in answer.partitions)
    return [(each.error_code, each.low_watermark) for each in answer.partitions]


def offset(wire: Wire, timestamp: int) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[partition])])
    return wire.ask(request, 7).topics[0].partitions[0].offset


def fetch(wire: Wire, fetch_offset: int, *, max_wait_ms: int = 0) -> Any:
    partition = FetchPartition(partition=0, fetch_offset=fetch_offset, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], min_bytes=1, max_wait_ms=max_wait_ms)
    return wire.ask(request, 11).responses[0].partitions[0]


@pytest.fixture
def filled(wire: Wire) -> Wire:
    """A topic of three batches of two records each."""
    create(wire)
    for number in range(3):
        produce(wire, batch(b"a%d" % number, b"b%d" % number, timestamp_ms=1_000 + number))
    return wire


@pytest.mark.parametrize("version", range(3))
def test_records_go_from_the_beginning_on(filled: Wire, version: int) -> None:
    assert delete(filled, 3, 1, -1, version=version) == [(0, 3), (0, 3), (0, 6)]


def test_readers_begin_where_the_log_begins(filled: Wire) -> None:
    assert delete(filled, 3) == [(ErrorCode.NONE, 3)]
    for gone in (0, 2):
        assert fetch(filled, gone).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    found = fetch(filled, 3)
    assert (found.error_code, found.log_start_offset, found.high_watermark) == (ErrorCode.NONE, 3, 6)
    assert values_in(found.records) == [b"a1", b"b1", b"a2", b"b2"], "the whole batch: its reader leaves out the first"
    assert produce(filled, batch(b"v")).log_start_offset == 3


def test_offsets_that_are_asked_for_are_there(filled: Wire) -> None:
    delete(filled, 3)
    assert [offset(filled, at) for at in (EARLIEST, LATEST, MAX_TIMESTAMP)] == [3, 6, 4]
    assert [offset(filled, at) for at in (1_000, 1_001, 1_002, 1_003)] == [3, 3, 4, -1]
    delete(filled, -1)
    assert [offset(filled, at) for at in (EARLIEST, LATEST, MAX_TIMESTAMP, 1_000)] == [6, 6, -1, -1]


@pytest.mark.parametrize(
    ("topic", "partition", "before_offset", "code"),
    [
        ("t", 0, 7, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("t", 0, -2, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("t", 1, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nowhere", 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_cannot_be(filled: Wire, topic: str, partition: int, before_offset: int, code: ErrorCode) -> None:
    assert delete(filled, before_offset, topic=topic, partition=partition) == [(code, -1)]


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("compact", ErrorCode.POLICY_VIOLATION),
        ("compact,delete", ErrorCode.NONE),
        ("", ErrorCode.NONE),
    ],
)
def test_a_topic_that_only_compacts_keeps_its_records(filled: Wire, policy: str, code: ErrorCode) -> None:
    changes(filled, ("cleanup.policy", SET, policy))
    assert delete(filled, -1)[0][0] == code
    assert delete(filled, 99)[0][0] == (code or ErrorCode.OFFSET_OUT_OF_RANGE)


def test_a_reader_that_waits_is_told_at_once(broker: Front, filled: Wire) -> None:
    partition = FetchPartition(partition=0, fetch_offset=6, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], min_bytes=1_000, max_wait_ms=60_000)
    filled.send(request, 11)
    writer = broker.connect()
    produce(writer, batch(b"v"))
    delete(writer, -1)
    _, response = filled.receive(request, 11)
    assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_restart_does_not_bring_them_back() -> None:
    with front() as broker:
        wire = broker.connect()
        create(wire)
        produce(wire, batch(b"a", b"b"))
        delete(wire, 1)
        storage = broker.storage
    with front(storage=storage) as again:
        wire = again.connect()
        assert (offset(wire, EARLIEST), fetch(wire, 0).error_code) == (1, ErrorCode.OFFSET_OUT_OF_RANGE)


def test_what_is_being_deleted_is_not_read_without_its_aborted_list(wire: Wire) -> None:
    """The deletion is decided and not durable yet: the second request is read before the first is answered."""
    create(wire)
    bound = wire.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
    aborted = batch(b"aborted", producer_id=bound.producer_id, producer_epoch=0, base_sequence=0, transactional=True)
    assert produce_in_transaction(wire, aborted, 12, transactional_id="x").error_code == ErrorCode.NONE
    end = EndTxnRequest(transactional_id="x", producer_id=bound.producer_id, producer_epoch=0, committed=False)
    assert wire.ask(end, 5).error_code == ErrorCode.NONE
    wanted = [DeleteRecordsPartition(partition_index=0, offset=-1)]
    deletion = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=wanted)])
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    reading = FetchRequest(topics=[FetchTopic(topic="t", partitions=partitions)], isolation_level=1, session_epoch=-1)
    frames = [*encode_request(deletion, 2, 1, "c"), *encode_request(reading, 11, 2, "c")]
    wire.socket.sendall(b"".join(frames))
    wire.receive(deletion, 2)
    _, answer = wire.receive(reading, 11)
    assert values_in(answer.responses[0].partitions[0].records or b"") == []
