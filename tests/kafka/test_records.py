"""Produce, Fetch and ListOffsets over the wire."""

import struct
from collections.abc import Callable

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from exacta.core.rejections import Rejection
from exacta.front.threads import on_thread
from exacta.kafka import offset_for_time
from exacta.kafka.handlers.k02_list_offsets import MAX_SEARCHES_IN_FLIGHT
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from exacta.protocol.kafka.messages.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from tests.kafka.wire import Front, Wire, batch, front, values_in


def compressed(*timestamps_ms: int) -> bytes:
    """Build a batch of compressed records of these times."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=1,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for number, time_ms in enumerate(timestamps_ms):
        builder.append(number, timestamp=time_ms, key=None, value=b"v" * 1_000, headers=[])
    return bytes(builder.build())


PRODUCE_VERSIONS = range(3, 13)
FETCH_VERSIONS = range(4, 13)


@pytest.fixture(autouse=True)
def topic(wire: Wire) -> None:
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)


def produce(wire: Wire, records: bytes | None, version: int = 9, acks: int = -1, **options: object) -> object:
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(acks=acks, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    for name, value in options.items():
        setattr(request, name, value)
    response = wire.ask(request, version)
    return response.responses[0].partition_responses[0]


def fetch(wire: Wire, version: int = 11, offset: int = 0, *, committed: bool = False, **options: int) -> object:
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


def list_offset(wire: Wire, timestamp: int, version: int = 7, *, committed: bool = False, epoch: int = -1) -> object:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(
        isolation_level=int(committed), topics=[ListOffsetsTopic(name="t", partitions=[partition])]
    )
    return wire.ask(request, version).topics[0].partitions[0]


class Transaction:
    def __init__(self, wire: Wire) -> None:
        bound = wire.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
        self.wire, self.producer_id, self.epoch, self.sequence = wire, bound.producer_id, bound.producer_epoch, 0

    def add(self) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
        )
        response = self.wire.ask(request, 3)
        code: int = response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return code

    def write(self, value: bytes, version: int = 9) -> object:
        records = batch(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        answer = produce(self.wire, records, version, transactional_id="x")
        if not answer.error_code:
            self.sequence += 1
        return answer

    def end(self, *, commit: bool) -> int:
        request = EndTxnRequest(
            transactional_id="x", producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )
        code: int = self.wire.ask(request, 4).error_code
        return code


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


class TestListOffsets:
    @pytest.mark.parametrize("version", range(1, 12))
    def test_first_and_next(self, wire: Wire, version: int) -> None:
        produce(wire, batch(b"a", b"b"))
        assert list_offset(wire, -2, version).offset == 0
        assert list_offset(wire, -1, version).offset == 2

    def test_next_for_committed_readers_is_the_last_stable_offset(self, wire: Wire) -> None:
        produce(wire, batch(b"a"))
        transaction = Transaction(wire)
        transaction.add()
        transaction.write(b"b")
        assert list_offset(wire, -1, committed=True).offset == 1
        assert list_offset(wire, -1).offset == 2

    def test_what_is_acknowledged_but_not_synced_counts_for_uncommitted_readers(self, wire: Wire) -> None:
        """Decision 0016: only a transaction's first write waits for the sync with which readers see it."""
        transaction = Transaction(wire)
        transaction.add()
        for offset in range(5):
            transaction.write(b"v")
            assert list_offset(wire, -1).offset == offset + 1

    def test_by_time(self, wire: Wire) -> None:
        for time_ms in (10, 30, 20):
            produce(wire, batch(b"v", timestamp_ms=time_ms))
        found = list_offset(wire, 11)
        assert (found.offset, found.timestamp, found.leader_epoch) == (1, 30, 0)
        nothing = list_offset(wire, 31)
        assert (nothing.offset, nothing.timestamp, nothing.leader_epoch) == (-1, -1, -1)

    def test_the_latest_time(self, wire: Wire) -> None:
        assert list_offset(wire, -3).offset == -1
        for time_ms in (10, 1_700_000_000_000, 20):
            produce(wire, batch(b"v", timestamp_ms=time_ms))
        found = list_offset(wire, -3)
        assert (found.offset, found.timestamp) == (1, 1_700_000_000_000)

    def test_the_record_is_found_not_only_its_batch(self, wire: Wire) -> None:
        def found(time_ms: int) -> tuple[int, int]:
            answer = list_offset(wire, time_ms)
            return answer.offset, answer.timestamp

        produce(wire, batch(b"a", b"b", b"c", timestamps_ms=(1_000, 3_000, 2_000)))
        produce(wire, batch(b"d", b"e", timestamps_ms=(2_500, 5_000)))
        assert [found(at) for at in (0, 1_000, 1_001, 3_001, 5_001)] == [
            (0, 1_000),
            (0, 1_000),
            (1, 3_000),
            (4, 5_000),
            (-1, -1),
        ]
        assert found(-3) == (4, 5_000)
        partition = DeleteRecordsPartition(partition_index=0, offset=2)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[partition])])
        assert wire.ask(request, 2).topics[0].partitions[0].low_watermark == 2
        assert [found(at) for at in (0, 2_001, 2_501)] == [(2, 2_000), (3, 2_500), (4, 5_000)]

    def test_what_cannot_be_read_is_an_error(self, broker: Front, wire: Wire) -> None:
        produce(wire, batch(b"v", timestamp_ms=1_000))
        broker.storage.read_fault = "the disk is gone"
        assert [list_offset(wire, at).error_code for at in (0, -3)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
        assert [list_offset(wire, at).error_code for at in (-1, -2, 2_000)] == [ErrorCode.NONE] * 3

    def test_what_cannot_be_searched_is_an_error_and_a_line_in_the_log(
        self, wire: Wire, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(*_: object) -> None:
            raise ValueError("no batch")

        monkeypatch.setattr(offset_for_time, "find_record", fail)
        produce(wire, batch(b"v", timestamp_ms=1_000))
        assert list_offset(wire, 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "t-0 at offset 0 cannot be searched" in caplog.text

    def test_few_partitions_are_searched_at_once(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each search holds a whole batch while it waits for a thread."""
        in_flight: list[int] = [0]

        def counted(call: Callable[[], object], done: Callable[[object], None]) -> None:
            in_flight.append(in_flight[-1] + 1)

            def ended(found: object) -> None:
                in_flight.append(in_flight[-1] - 1)
                done(found)

            on_thread(call, ended)

        monkeypatch.setattr(offset_for_time, "on_thread", counted)
        count = 3 * MAX_SEARCHES_IN_FLIGHT
        wire.ask(CreateTopicsRequest(topics=[CreatableTopic(name="u", num_partitions=count, replication_factor=1)]), 7)
        data = [PartitionProduceData(index=each, records=batch(b"v", timestamp_ms=each)) for each in range(count)]
        wire.ask(ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="u", partition_data=data)]), 9)
        asked = [ListOffsetsPartition(partition_index=each, timestamp=0) for each in reversed(range(count))]
        answers = wire.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name="u", partitions=asked)]), 7).topics[0]
        found = [(each.partition_index, each.offset, each.timestamp) for each in answers.partitions]
        assert found == [(each, 0, each) for each in reversed(range(count))]
        assert (max(in_flight), in_flight[-1]) == (MAX_SEARCHES_IN_FLIGHT, 0)

    def test_a_partition_that_is_gone_when_its_turn_comes_is_unknown(self, broker: Front) -> None:
        found: list[object] = []

        def find() -> None:
            offset_for_time.find_offset(broker.context, None, "gone", 0, 0, read_committed=False, done=found.append)

        broker.on_loop(find)
        assert found == [Rejection.UNKNOWN_TOPIC_OR_PARTITION]

    def test_of_a_compressed_batch_the_beginning_is_known(self, wire: Wire) -> None:
        produce(wire, batch(b"v", timestamp_ms=500))
        produce(wire, bytes(compressed(1_000, 3_000)))
        answer = list_offset(wire, 2_000)
        assert (answer.offset, answer.timestamp) == (1, 3_000)

    def test_the_latest_time_is_that_of_all_records_but_read_only_where_it_is_committed(self, wire: Wire) -> None:
        produce(wire, batch(b"v", timestamp_ms=1_000))
        transaction = Transaction(wire)
        transaction.add()
        transaction.write(b"late")
        produce(wire, batch(b"v", timestamp_ms=500))
        assert [list_offset(wire, -3, committed=committed).offset for committed in (False, True)] == [0, 0]
        produce(wire, batch(b"v", timestamp_ms=5_000))
        assert [list_offset(wire, -3, committed=committed).offset for committed in (False, True)] == [3, -1]
        assert [list_offset(wire, 1_001, committed=committed).offset for committed in (False, True)] == [3, -1]

    @pytest.mark.parametrize("version", range(8, 12))
    def test_all_storage_is_local(self, wire: Wire, version: int) -> None:
        produce(wire, batch(b"a", b"b"))
        assert list_offset(wire, -4, version).offset == 0
        for time_ms, since in [(-5, 9), (-6, 11)]:
            answer = list_offset(wire, time_ms, version)
            expected = ErrorCode.NONE if version >= since else ErrorCode.UNSUPPORTED_VERSION
            assert (answer.error_code, answer.offset, answer.leader_epoch) == (expected, -1, -1)

    @pytest.mark.parametrize(("time_ms", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-100, 7), (-7, 11)])
    def test_other_special_times_are_unsupported(self, wire: Wire, time_ms: int, version: int) -> None:
        assert list_offset(wire, time_ms, version).error_code == ErrorCode.UNSUPPORTED_VERSION

    def test_unknown_things(self, wire: Wire) -> None:
        assert list_offset(wire, -1, epoch=3).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert list_offset(wire, -1, epoch=-2).error_code == ErrorCode.FENCED_LEADER_EPOCH
        partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="nowhere", partitions=[partition])])
        answer = wire.ask(request, 7).topics[0].partitions[0]
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        twice = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[partition, partition])])
        [answer] = wire.ask(twice, 7).topics[0].partitions
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        apart = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[partition])] * 2)
        answers = [each.partitions[0] for each in wire.ask(apart, 7).topics]
        assert [each.error_code for each in answers] == [ErrorCode.INVALID_REQUEST] * 2


def test_bytes_are_stored_as_they_came_but_for_offset_and_leader_epoch(wire: Wire) -> None:
    produce(wire, batch(b"first"))
    sent = batch(b"second")
    produce(wire, sent)
    got = bytes(fetch(wire, offset=1).records)
    assert got[16:] == sent[16:]
    assert struct.unpack(">q", got[:8]) == (1,)
