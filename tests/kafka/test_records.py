"""Produce, Fetch and ListOffsets over the wire."""

import struct
from typing import Any

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from tests.kafka.recording import Transaction, list_offset, produce
from tests.kafka.wire import Wire, batch, front, values_in

PRODUCE_VERSIONS = range(3, 13)


FETCH_VERSIONS = range(4, 13)


@pytest.fixture(autouse=True)
def topic(wire: Wire) -> None:
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)


def fetch(wire: Wire, version: int = 11, offset: int = 0, *, committed: bool = False, **options: int) -> Any:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        topics=[FetchTopic(topic="t", partitions=[partition])], isolation_level=int(committed), min_bytes=1
    )
    for name, value in options.items():
        setattr(request if hasattr(request, name) else partition, name, value)
    response = wire.ask(request, version)
    if response.error_code:
        return response
    return response.responses[0].partitions[0]


class TestProduce:
    @pytest.mark.parametrize("version", PRODUCE_VERSIONS)
    def test_every_version(self, wire: Wire, version: int) -> None:
        answer = produce(wire, batch(b"a", b"b"), version)
        assert (answer.error_code, answer.base_offset) == (0, 0)
        assert produce(wire, batch(b"c"), version).base_offset == 2

    def test_a_repeat_gets_its_first_offset(self, wire: Wire) -> None:
        bound = wire.ask(InitProducerIdRequest(), 4)
        records = batch(b"a", producer_id=bound.producer_id, producer_epoch=bound.producer_epoch, base_sequence=0)
        assert produce(wire, records).base_offset == 0
        assert produce(wire, batch(b"between")).base_offset == 1
        assert produce(wire, records).base_offset == 0
        assert values_in(fetch(wire).records) == [b"a", b"between"]

    @pytest.mark.parametrize(
        ("records", "code"),
        [
            (None, ErrorCode.INVALID_RECORD),
            (b"", ErrorCode.INVALID_RECORD),
            (batch(b"a")[:-1], ErrorCode.INVALID_RECORD),
            (batch(b"a")[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
            (batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
            (batch(b"x" * 1_100_000), ErrorCode.MESSAGE_TOO_LARGE),
            (
                batch(b"a", producer_id=0, producer_epoch=0, base_sequence=0, transactional=True),
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ),
        ],
        ids=["null", "empty", "cut", "bad CRC", "two batches", "too large", "no transactional id"],
    )
    def test_bad_batches_are_refused_and_nothing_is_stored(
        self, wire: Wire, records: bytes | None, code: ErrorCode
    ) -> None:
        answer = produce(wire, records)
        assert (answer.error_code, answer.base_offset) == (code, -1)
        assert answer.error_message
        assert list_offset(wire, -1).offset == 0

    def test_a_bad_batch_does_not_refuse_its_neighbours(self, wire: Wire) -> None:
        wire.ask(CreateTopicsRequest(topics=[CreatableTopic(name="two", num_partitions=2, replication_factor=1)]), 7)
        data = [PartitionProduceData(index=0, records=b"bad"), PartitionProduceData(index=1, records=batch(b"a"))]
        data.append(PartitionProduceData(index=2, records=batch(b"a")))
        request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="two", partition_data=data)])
        answers = wire.ask(request, 9).responses[0].partition_responses
        assert [answer.error_code for answer in answers] == [
            ErrorCode.INVALID_RECORD,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    @pytest.mark.parametrize("acks", [-2, 2, 7])
    def test_other_acks_are_refused(self, wire: Wire, acks: int) -> None:
        assert produce(wire, batch(b"a"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS

    def test_the_topics_own_size_limit_counts(self, wire: Wire) -> None:
        config = CreatableTopicConfig(name="max.message.bytes", value="100")
        wire.ask(
            CreateTopicsRequest(
                topics=[CreatableTopic(name="small", replication_factor=1, num_partitions=1, configs=[config])]
            ),
            7,
        )
        data = PartitionProduceData(index=0, records=batch(b"x" * 100))
        request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="small", partition_data=[data])])
        assert wire.ask(request, 9).responses[0].partition_responses[0].error_code == ErrorCode.MESSAGE_TOO_LARGE

    def test_nothing_at_all(self, wire: Wire) -> None:
        assert wire.ask(ProduceRequest(acks=-1), 9).responses == []


class TestFetch:
    @pytest.mark.parametrize("version", FETCH_VERSIONS)
    def test_every_version(self, wire: Wire, version: int) -> None:
        produce(wire, batch(b"a", b"b"))
        data = fetch(wire, version)
        assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 2, 2)
        assert data.aborted_transactions is None
        assert values_in(data.records) == [b"a", b"b"]

    def test_from_the_middle_of_a_batch_comes_the_whole_batch(self, wire: Wire) -> None:
        produce(wire, batch(b"a", b"b"))
        assert values_in(fetch(wire, offset=1).records) == [b"a", b"b"]

    def test_at_the_end_there_is_nothing_after_the_wait(self, wire: Wire) -> None:
        data = fetch(wire, max_wait_ms=5)
        assert (data.error_code, bytes(data.records)) == (0, b"")

    def test_beyond_the_end_is_out_of_range_at_once(self, wire: Wire) -> None:
        data = fetch(wire, offset=1, max_wait_ms=60_000)
        assert (data.error_code, data.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)

    def test_that_nothing_is_there_is_said_before_anything_else(self, wire: Wire) -> None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert fetch(wire, partition=9, current_leader_epoch=1).error_code == unknown
        assert (
            fetch(wire, 12, last_fetched_epoch=1, current_leader_epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        )

    def test_a_negative_epoch_is_none(self, wire: Wire) -> None:
        assert fetch(wire, current_leader_epoch=-2).error_code == ErrorCode.NONE
        assert (
            fetch(wire, 12, last_fetched_epoch=1, current_leader_epoch=-2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        )

    def test_there_are_no_followers(self, wire: Wire) -> None:
        assert fetch(wire, replica_id=1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert fetch(wire, replica_id=1, current_leader_epoch=0).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH

    @pytest.mark.parametrize(
        ("epoch", "offset", "code", "end_offset"),
        [
            (0, 1, ErrorCode.NONE, None),
            (0, 5, ErrorCode.NONE, 2),
            (1, 0, ErrorCode.OFFSET_OUT_OF_RANGE, None),
            (-1, 5, ErrorCode.OFFSET_OUT_OF_RANGE, None),
        ],
    )
    def test_a_reader_whose_log_has_gone_another_way(
        self, wire: Wire, epoch: int, offset: int, code: ErrorCode, end_offset: int | None
    ) -> None:
        produce(wire, batch(b"a", b"b"))
        data = fetch(wire, 12, offset, last_fetched_epoch=epoch)
        assert data.error_code == code
        assert (data.diverging_epoch.end_offset if data.diverging_epoch else None) == end_offset

    def test_an_unknown_partition_answers_at_once(self, wire: Wire) -> None:
        data = fetch(wire, partition=9, max_wait_ms=60_000)
        assert (data.error_code, data.high_watermark) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)

    def test_a_newer_leader_epoch_is_unknown(self, wire: Wire) -> None:
        assert fetch(wire, current_leader_epoch=0, max_wait_ms=0).error_code == ErrorCode.NONE
        assert fetch(wire, current_leader_epoch=1, max_wait_ms=60_000).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH

    def test_limits_give_at_least_one_batch(self, wire: Wire) -> None:
        for value in (b"a", b"b", b"c"):
            produce(wire, batch(value))
        size = len(batch(b"a"))
        assert values_in(fetch(wire, max_bytes=1).records) == [b"a"]
        assert values_in(fetch(wire, partition_max_bytes=2 * size).records) == [b"a", b"b"]

    def test_read_committed_stops_at_an_open_transaction_and_learns_what_was_aborted(self, wire: Wire) -> None:
        transaction = Transaction(wire)
        assert transaction.add() == 0
        transaction.write(b"lost")
        produce(wire, batch(b"plain"))
        open_now = fetch(wire, committed=True, max_wait_ms=0)
        assert (open_now.last_stable_offset, open_now.high_watermark, bytes(open_now.records)) == (0, 2, b"")
        assert open_now.aborted_transactions == []
        assert values_in(fetch(wire).records) == [b"lost", b"plain"]
        assert transaction.end(commit=False) == 0
        ended = fetch(wire, committed=True)
        assert ended.last_stable_offset == 3
        [aborted] = ended.aborted_transactions
        assert (aborted.producer_id, aborted.first_offset) == (transaction.producer_id, 0)

    def test_a_write_without_a_begun_transaction_is_abortable(self, wire: Wire) -> None:
        transaction = Transaction(wire)
        assert transaction.write(b"a").error_code == ErrorCode.TRANSACTION_ABORTABLE
        assert transaction.end(commit=False) == 0
        assert transaction.add() == 0
        assert transaction.write(b"b").error_code == 0
        assert transaction.end(commit=True) == 0
        assert values_in(fetch(wire, committed=True).records) == [b"b"]

    def test_the_brokers_own_limit_counts(self) -> None:
        with front(fetch_max_bytes=1024) as broker:
            wire = broker.connect()
            wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
            for _ in range(3):
                produce(wire, batch(b"x" * 600))
            assert len(values_in(fetch(wire).records)) == 1


def test_bytes_are_stored_as_they_came_but_for_offset_and_leader_epoch(wire: Wire) -> None:
    produce(wire, batch(b"first"))
    sent = batch(b"second")
    produce(wire, sent)
    got = bytes(fetch(wire, offset=1).records)
    assert got[16:] == sent[16:]
    assert struct.unpack(">q", got[:8]) == (1,)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_client_cannot_forge_another_body(wire: Wire, version: int) -> None:
    """Batches of other bodies will lie in the log beside Kafka's; whoever sent one would speak for another front."""
    forged = bytearray(batch(b"forged"))
    forged[16] = 0x50  # not covered by the checksum
    answer = produce(wire, bytes(forged), version)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.CORRUPT_MESSAGE, -1)
    assert produce(wire, batch(b"own"), version).base_offset == 0
    assert values_in(fetch(wire).records) == [b"own"]
