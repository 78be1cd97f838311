"""ListOffsets over the wire: by time, the ends, and what readers of committed records are told."""

from collections.abc import Callable

import pytest

from exacta.core.rejections import Rejection
from exacta.front import offset_for_time
from exacta.front.offset_for_time import MAX_SEARCHES_IN_FLIGHT
from exacta.protocol.kafka.compression import GZIP, LEVELS, LZ4, NONE, SNAPPY, ZSTD
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from exacta.protocol.kafka.records import HEADER_SIZE, recompressed, with_max_timestamp
from tests.kafka.recording import Transaction, list_offset, produce
from tests.kafka.wire import Front, Wire, batch


def compressed(codec: int, *timestamps_ms: int) -> bytes:
    """Build a batch of records of these times, in this codec."""
    plain = batch(*[b"v" * 100] * len(timestamps_ms), timestamps_ms=timestamps_ms)
    return recompressed(plain, plain[HEADER_SIZE:], codec, LEVELS.get(codec, 0))


@pytest.fixture(autouse=True)
def topic(wire: Wire) -> None:
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)


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

    def test_few_partitions_are_searched_at_once(
        self, broker: Front, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each search holds a whole batch while it waits for a thread."""
        in_flight: list[int] = [0]
        conversions = broker.context.memory.conversions
        on_thread = conversions.on_thread

        def counted(work: Callable[[], object], done: Callable[[object], None], owner: str) -> None:
            in_flight.append(in_flight[-1] + 1)

            def ended(found: object) -> None:
                in_flight.append(in_flight[-1] - 1)
                done(found)

            on_thread(work, ended, owner=owner)

        monkeypatch.setattr(conversions, "on_thread", counted)
        count = 3 * MAX_SEARCHES_IN_FLIGHT
        wire.ask(CreateTopicsRequest(topics=[CreatableTopic(name="u", num_partitions=count, replication_factor=1)]), 7)
        data = [PartitionProduceData(index=each, records=compressed(GZIP, each)) for each in range(count)]
        wire.ask(ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="u", partition_data=data)]), 9)
        asked = [ListOffsetsPartition(partition_index=each, timestamp=0) for each in reversed(range(count))]
        answers = wire.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name="u", partitions=asked)]), 7).topics[0]
        found = [(each.partition_index, each.offset, each.timestamp) for each in answers.partitions]
        assert found == [(each, 0, each) for each in reversed(range(count))]
        assert (max(in_flight), in_flight[-1]) == (MAX_SEARCHES_IN_FLIGHT, 0)

    def test_a_partition_that_is_gone_when_its_turn_comes_is_unknown(self, broker: Front) -> None:
        found: list[object] = []

        def find() -> None:
            # No request need be told of what is found in memory.
            offset_for_time.find_offset(
                broker.context,
                None,  # type: ignore[arg-type]
                "gone",
                0,
                0,
                read_committed=False,
                done=found.append,
            )

        broker.on_loop(find)
        assert found == [Rejection.UNKNOWN_TOPIC_OR_PARTITION]

    @pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
    def test_the_record_is_found_in_a_compressed_batch_as_well(self, wire: Wire, codec: int) -> None:
        produce(wire, batch(b"v", timestamp_ms=500))
        produce(wire, compressed(codec, *range(1_000, 1_200)))
        produce(wire, batch(b"v", timestamp_ms=700))
        for number in (0, 50, 100, 199):
            answer = list_offset(wire, 1_000 + number)
            assert (answer.offset, answer.timestamp) == (1 + number, 1_000 + number)
        latest = list_offset(wire, -3)
        assert (latest.offset, latest.timestamp) == (200, 1_199)

    @pytest.mark.parametrize("codec", [NONE, LZ4])
    @pytest.mark.parametrize("said_ms", [-1, 5, 1_002, 1_700_000_000_000])
    def test_what_a_batch_says_of_its_highest_time_is_not_believed(self, wire: Wire, codec: int, said_ms: int) -> None:
        produce(wire, with_max_timestamp(compressed(codec, 1_000, 1_003, 1_001), said_ms, log_append_time=False))
        produce(wire, batch(b"v", timestamp_ms=1_002))
        found = [list_offset(wire, time_ms) for time_ms in (1_001, 1_003, 1_004, -3)]
        assert [(each.offset, each.timestamp) for each in found] == [(1, 1_003), (1, 1_003), (-1, -1), (1, 1_003)]

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
