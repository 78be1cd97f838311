"""The lag that Ask tells: what it counts is what a read_committed reader gets, record by record."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exacta.core.groups.lag import visible_end
from exacta.protocol.kafka.committed import visible_batches
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k08_offset_commit as commit
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.readmodel.groups import AskLag, Lag
from tests.kafka import asking
from tests.kafka.recording import list_offset
from tests.kafka.test_topic_ids import create, delete
from tests.kafka.test_transactions_and_groups import Producer
from tests.kafka.wire import Wire, batch, front
from tests.shares import examples

NAMES = "xyz"


class Writer(Producer):
    """A transactional producer of partition 0, which registers once per transaction."""

    def __init__(self, wire: Wire, transactional_id: str, topic: str = "t") -> None:
        super().__init__(wire, transactional_id)
        self.topic = topic
        self.sequence = 0
        self.is_open = False

    def write(self, count: int, timestamp_ms: int = 1_000, value: bytes = b"v") -> None:
        if not self.is_open:
            assert self.add_partitions(3, **{self.topic: [0]}) == {(self.topic, 0): 0}
            self.is_open = True
        pair = {"producer_id": self.producer_id, "producer_epoch": self.epoch}
        produce(
            self.wire,
            batch(
                *[value] * count,
                base_sequence=self.sequence,
                transactional=True,
                timestamp_ms=timestamp_ms,
                **pair,
            ),
            self.transactional_id,
            self.topic,
        )
        self.sequence += count

    def finish(self, *, commit: bool) -> None:
        if self.is_open:
            assert self.end(commit=commit) == 0
        self.is_open = False


def produce(wire: Wire, records: bytes, transactional_id: str | None = None, name: str = "t") -> None:
    data = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name=name, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=9_000, transactional_id=transactional_id, topic_data=[topic])
    assert wire.ask(request, 11).responses[0].partition_responses[0].error_code == 0


def commit_offset(wire: Wire, offset: int, group: str = "g", topic: str = "t") -> None:
    partition = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    named = commit.OffsetCommitRequestTopic(name=topic, partitions=[partition])
    wire.ask(commit.OffsetCommitRequest(group_id=group, topics=[named]), 6)


def lag(wire: Wire, group: str = "g") -> Lag:
    return asking.lag(wire, group)[0]


def offsets_read(wire: Wire, *, committed: bool) -> list[int]:
    """Read everything as a consumer does, and return the offsets of the records."""
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 24)
    topic = FetchTopic(topic="t", partitions=[partition])
    request = FetchRequest(isolation_level=int(committed), min_bytes=1, topics=[topic])
    data = wire.ask(request, 12).responses[0].partitions[0]
    aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
    visible = visible_batches(memoryview(bytes(data.records)), aborted, committed_only=committed)
    return [header.base_offset + delta for header, _ in visible for delta in range(header.record_count)]


STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.integers(1, 3)),
    st.tuples(st.just("plain"), st.integers(1, 3)),
    st.tuples(st.just("end"), st.sampled_from(NAMES), st.booleans()),
)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=20), buffer=st.sampled_from(["marker", "sidecar"]))
def test_the_lag_is_what_a_reader_of_committed_records_has_not_got(steps: list[tuple[Any, ...]], buffer: str) -> None:
    with front(transaction_buffer=buffer) as broker:
        wire = broker.connect()
        create(wire)
        writers = {name: Writer(wire, name) for name in NAMES}
        decided: dict[str, list[int]] = {name: [] for name in NAMES}
        aborted: set[int] = set()
        for step in steps:
            match step:
                case ("write", name, count):
                    before = set(offsets_read(wire, committed=False))
                    writers[name].write(count)
                    decided[name] += set(offsets_read(wire, committed=False)) - before
                case ("plain", count):
                    produce(wire, batch(*[b"v"] * count))
                case ("end", name, committed):
                    writers[name].finish(commit=committed)
                    aborted |= set() if committed else set(decided[name])
                    decided[name] = []
        visible = offsets_read(wire, committed=True)
        ever = [offset for offset in offsets_read(wire, committed=False) if offset not in aborted]
        commit_offset(wire, 0)
        end = lag(wire)
        assert end.visible_end_offset == (visible[-1] + 1 if visible else 0)
        held_by = {each.transactional_id for each in end.held_by}
        assert held_by == {name for name, writer in writers.items() if writer.is_open and buffer == "marker"}
        for offset in range(end.high_watermark + 1):
            commit_offset(wire, offset)
            found = lag(wire)
            assert found.unread == sum(each >= offset for each in visible)
            beyond = max(offset, found.last_stable_offset)
            assert found.held_back == sum(each >= beyond for each in ever)


class TestAnswers:
    @pytest.fixture(autouse=True)
    def topic(self, wire: Wire) -> None:
        create(wire)

    def test_nothing_is_unread_though_markers_follow(self, wire: Wire) -> None:
        writer = Writer(wire, "x")
        writer.write(2)
        writer.finish(commit=True)
        commit_offset(wire, 2)  # what a reader commits that goes by its last record
        found = lag(wire)
        assert (found.unread, found.held_back) == (0, 0)
        assert (found.visible_end_offset, found.last_stable_offset, found.high_watermark) == (2, 3, 3)

    def test_who_holds_back_since_when(self, wire: Wire) -> None:
        writer = Writer(wire, "x")
        writer.write(2)
        produce(wire, batch(b"behind"))
        commit_offset(wire, 0)
        found = lag(wire)
        assert (found.unread, found.held_back, found.last_stable_offset) == (0, 3, 0)
        [held] = found.held_by
        assert (held.transactional_id, held.first_offset) == ("x", 0)
        assert 0 <= held.open_for_ms < 60_000

    @pytest.mark.parametrize("value", [b"v", bytes(300_000)], ids=["held", "spilled"])
    def test_what_is_staged_holds_nothing_back(self, wire: Wire, value: bytes) -> None:
        create(wire, "s", configs={"transaction.buffer": "sidecar"})
        writer = Writer(wire, "x", "s")
        writer.write(2, value=value)
        produce(wire, batch(b"before"), name="s")
        commit_offset(wire, 0, topic="s")
        found = lag(wire)
        assert (found.unread, found.held_back, found.held_by) == (1, 0, ())
        assert (found.visible_end_offset, found.last_stable_offset, found.high_watermark) == (1, 1, 1)
        writer.finish(commit=True)
        produce(wire, batch(b"behind"), name="s")
        found = lag(wire)
        assert (found.unread, found.held_back) == (4, 0)
        assert (found.visible_end_offset, found.last_stable_offset, found.high_watermark) == (4, 4, 4)
        commit_offset(wire, 2, topic="s")
        assert lag(wire).unread == 2

    def test_a_position_that_an_open_transaction_moves(self, wire: Wire) -> None:
        produce(wire, batch(b"a", b"b"))
        writer = Writer(wire, "x")
        assert (writer.add_group(), writer.commit_offset(2)) == (0, 0)
        found = lag(wire)
        assert (found.committed_offset, found.commit_is_pending, found.unread) == (None, True, 2)
        writer.end(commit=True)
        found = lag(wire)
        assert (found.committed_offset, found.commit_is_pending, found.unread) == (2, False, 0)

    def test_a_position_beyond_the_end(self, wire: Wire) -> None:
        produce(wire, batch(b"a"))
        commit_offset(wire, 99)
        assert (lag(wire).unread, lag(wire).held_back) == (0, 0)

    def test_a_group_that_is_not_there(self, wire: Wire) -> None:
        produce(wire, batch(b"a"))
        commit_offset(wire, 0)
        assert asking.refusal(wire, AskLag(group="nobody")) == ErrorCode.GROUP_ID_NOT_FOUND

    def test_a_topic_that_is_gone(self, wire: Wire) -> None:
        commit_offset(wire, 0)
        delete(wire)
        assert asking.lag(wire) == ()


@pytest.mark.parametrize("visible", [[], [0], [9], [0, 5], [3, 4, 5]])
@pytest.mark.parametrize("start", [0, 2])
def test_the_search_for_the_end(visible: list[int], start: int) -> None:
    there = [offset for offset in visible if offset >= start]
    found = visible_end(lambda offset: sum(each >= offset for each in there), start, 10)
    assert found == (there[-1] + 1 if there else start)


@pytest.mark.parametrize(("option", "end"), [(False, 6), (True, 2)])
def test_the_end_that_committed_readers_are_told(option: bool, end: int) -> None:
    """Decision 0013. After record 1 there are a marker, aborted records, and another marker."""
    with front(list_offsets_visible_end=option) as broker:
        wire = broker.connect()
        create(wire)
        writer = Writer(wire, "x")
        for commits in (True, False):
            writer.write(2)
            writer.finish(commit=commits)
        assert list_offset(wire, -1, committed=True).offset == end
        assert list_offset(wire, -1).offset == 6
