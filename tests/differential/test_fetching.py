"""Random fetches, in full and by sessions (KIP-227), by names and by topic ids (KIP-516): the same answers on both.

Runs as `test_differential.py` does. Both logs get the same records, so offsets are the same too; a reader's session ids
are each broker's own, and compared by whether they are new, the one before, or none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k00_produce, k01_fetch, k03_metadata, k19_create_topics, k20_delete_topics
from exacta.protocol.kafka.records import iter_batches
from tests.differential.agree import marks, on_both
from tests.differential.side import Side
from tests.kafka.test_ask_lag import Writer
from tests.kafka.wire import Wire, batch

pytestmark = marks

PARTITIONS = (0, 1, 2)
NOT_THERE = 9
NOBODYS_ID = b"\7" * 16
NAMES_UNTIL = 12
_DIVERGING_SINCE = 12
"""The first version of Fetch that tells where a log has parted from its reader's."""


@dataclass(frozen=True)
class Wanted:
    """One partition; `offset` counts from its end, or from 0 where it is None."""

    offset: int | None
    leader_epoch: int = -1
    last_fetched_epoch: int = -1


@dataclass(frozen=True)
class Fetch:
    """One fetch. `names` and `counts` say which session and which epoch it gives, of what the reader was told."""

    version: int
    counts: str
    names: str
    wanted: dict[int, Wanted]
    forgotten: tuple[int, ...]
    known_topic: bool
    committed: bool
    max_bytes: int


@dataclass(frozen=True)
class Write:
    """A record for a partition."""

    partition: int


WANTED = st.builds(
    Wanted,
    offset=st.sampled_from([-2, -1, 0, 0, 0, 3, None]),
    leader_epoch=st.sampled_from([-1, -1, -1, 0, 1]),
    last_fetched_epoch=st.sampled_from([-1, -1, -1, 0, 1]),
)
FETCHES = st.builds(
    Fetch,
    version=st.sampled_from([11, 12, 13, 17, 17, 17, 18]),
    counts=st.sampled_from(["next", "next", "next", "next", "first", "first", "last", "wrong", "negative"]),
    names=st.sampled_from(["mine", "mine", "mine", "mine", "none", "nobodys"]),
    wanted=st.dictionaries(st.sampled_from([*PARTITIONS, *PARTITIONS, NOT_THERE]), WANTED, max_size=3),
    forgotten=st.lists(st.sampled_from([*PARTITIONS, NOT_THERE]), max_size=2).map(tuple),
    known_topic=st.sampled_from([True, True, True, True, False]),
    committed=st.booleans(),
    max_bytes=st.sampled_from([1 << 20, 1 << 20, 1]),
)
SEQUENCES = st.lists(st.one_of(FETCHES, FETCHES, FETCHES, st.builds(Write, st.sampled_from(PARTITIONS))), max_size=15)


class Reader:
    """One broker as a reader of one topic meets it."""

    def __init__(self, side: Side, topic: str) -> None:
        self.wire, self.topic = Wire(side.address), topic
        self.topic_id = b""
        self.create()
        for commits in (True, False):
            writer = self.writer(f"{topic}-{commits}")
            writer.write(2, _now_ms())
            writer.finish(commit=commits)
            self.until(lambda: self.data(Wanted(0)).last_stable_offset == self.data(Wanted(0)).high_watermark)

    def create(self) -> None:
        topic = k19_create_topics.CreatableTopic(name=self.topic, num_partitions=3, replication_factor=1)
        self.wire.ask(k19_create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        ask = k03_metadata.MetadataRequest(topics=[k03_metadata.MetadataRequestTopic(name=self.topic)])

        def there() -> bool:
            [found] = self.wire.ask(ask, 12).topics
            self.topic_id = found.topic_id
            return found.error_code == 0 and all(self.data(Wanted(0), each).error_code == 0 for each in PARTITIONS)

        self.until(there)

    def writer(self, transactional_id: str) -> Writer:
        """Return a producer, once the coordinator knows itself."""
        made: list[Writer] = []

        def bound() -> bool:
            made.append(Writer(self.wire, transactional_id, self.topic))
            return made[-1].producer_id >= 0

        self.until(bound)
        return made[-1]

    def until(self, condition: Any) -> None:
        for _ in range(10_000):
            if condition():
                return
        raise AssertionError(f"{self.topic} does not come about")

    def begin(self) -> None:
        self.session_id, self.epoch = 0, 0
        self.given: set[int] = set()
        self.ends = {each: self.data(Wanted(0), each).high_watermark for each in PARTITIONS}

    def data(self, wanted: Wanted, partition: int = 0) -> Any:
        """Fetch one partition, in full."""
        asked = k01_fetch.FetchPartition(partition=partition, fetch_offset=wanted.offset or 0)
        topic = k01_fetch.FetchTopic(topic=self.topic, partitions=[asked])
        request = k01_fetch.FetchRequest(topics=[topic], isolation_level=1, max_bytes=1)
        return self.wire.ask(request, 11).responses[0].partitions[0]

    def run(self, step: Fetch | Write) -> Any:
        if isinstance(step, Fetch):
            return self.fetch(step)
        data = k00_produce.PartitionProduceData(index=step.partition, records=batch(b"v", timestamp_ms=_now_ms()))
        topic = k00_produce.TopicProduceData(name=self.topic, partition_data=[data])
        [answer] = self.wire.ask(k00_produce.ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=[topic]), 9).responses
        self.ends[step.partition] += 1
        return answer.partition_responses[0].error_code

    def fetch(self, step: Fetch) -> Any:
        by_name = step.version <= NAMES_UNTIL
        name: dict[str, Any] = {"topic": self.topic if step.known_topic else "nobodys"}
        if not by_name:
            name = {"topic_id": self.topic_id if step.known_topic else NOBODYS_ID}
        partitions = [
            k01_fetch.FetchPartition(
                partition=index,
                fetch_offset=0 if wanted.offset is None else max(0, self.ends.get(index, 0) + wanted.offset),
                current_leader_epoch=wanted.leader_epoch,
                last_fetched_epoch=wanted.last_fetched_epoch,
                partition_max_bytes=300,
            )
            for index, wanted in step.wanted.items()
        ]
        request = k01_fetch.FetchRequest(
            session_id={"mine": self.session_id, "none": 0, "nobodys": 5}[step.names],
            session_epoch={"next": self.epoch, "first": 0, "last": -1, "wrong": self.epoch + 3, "negative": -4}[
                step.counts
            ],
            isolation_level=int(step.committed),
            max_bytes=step.max_bytes,
            topics=[k01_fetch.FetchTopic(partitions=partitions, **name)] if partitions else [],
            forgotten_topics_data=(
                [k01_fetch.ForgottenTopic(partitions=list(step.forgotten), **name)] if step.forgotten else []
            ),
        )
        response = self.wire.ask(request, step.version)
        session = "none"
        if response.session_id:
            session = "the same" if response.session_id == self.session_id else "another"
            self.given.add(response.session_id)
        if not response.error_code:
            is_next = response.session_id == self.session_id and step.counts == "next" and self.epoch
            self.epoch = self.epoch + 1 if is_next else int(bool(response.session_id))
            self.session_id = response.session_id
        told = [(self.name(topic), *_facts(data)) for topic in response.responses for data in topic.partitions]
        return ErrorCode(response.error_code).name, session, sorted(told, key=repr)

    def name(self, topic: Any) -> str:
        return "it" if topic.topic_id == self.topic_id or topic.topic == self.topic else "another"

    def make_anew(self) -> None:
        """Delete the topic, and create another of its name."""
        states = [k20_delete_topics.DeleteTopicState(name=self.topic)]
        self.wire.ask(k20_delete_topics.DeleteTopicsRequest(topics=states, timeout_ms=10_000), 6)
        self.until(lambda: self.data(Wanted(0)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self.create()

    def finish(self) -> None:
        for session_id in self.given:
            self.wire.ask(k01_fetch.FetchRequest(session_id=session_id, session_epoch=-1), 12)


def _now_ms() -> int:
    """Apache Kafka begins another segment with a record a week younger than the first, and a fetch ends before it."""
    return time.time_ns() // 1_000_000


def _facts(data: Any) -> tuple[Any, ...]:
    batches = [header.base_offset for header, _ in iter_batches(bytes(data.records or b""))]
    # Kafka's list reaches as far as its index of offsets is coarse; who reads skips what begins behind the records.
    listed = [each.first_offset for each in data.aborted_transactions or ()]
    aborted = [first_offset for first_offset in listed if batches and first_offset <= batches[-1]]
    diverges = data.diverging_epoch and (data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
    offsets = (data.high_watermark, data.last_stable_offset, data.log_start_offset)
    return data.partition_index, ErrorCode(data.error_code).name, offsets, batches, aborted, diverges


@pytest.fixture(scope="module")
def readers(sides: tuple[Side, Side]) -> Iterator[tuple[Reader, Reader]]:
    kafka, exacta = sides
    both = Reader(kafka, "fetched"), Reader(exacta, "fetched")
    yield both
    for reader in both:
        reader.wire.socket.close()


@on_both(SEQUENCES, share=0.2)
def test_fetching(readers: tuple[Reader, Reader], sequence: Sequence[Fetch | Write]) -> None:
    for reader in readers:
        reader.begin()
    try:
        for step in sequence:
            kafkas, ours = (reader.run(step) for reader in readers)
            if _cannot_tell(step, sequence) and kafkas[0] == "UNSUPPORTED_VERSION":
                return
            assert ours == kafkas, step
    finally:
        for reader in readers:
            reader.finish()


def _cannot_tell(step: Fetch | Write, sequence: Sequence[Fetch | Write]) -> bool:
    """Whether the version has no words for what diverges, of which a session of a newer one has asked (KIP-595).

    Kafka fails to write its answer then, and refuses all of it; Exacta leaves out what cannot be said. No client goes
    back to an older version within a session.
    """
    asked = any(
        wanted.last_fetched_epoch >= 0
        for each in sequence
        if isinstance(each, Fetch) and each.version >= _DIVERGING_SINCE
        for wanted in each.wanted.values()
    )
    return asked and isinstance(step, Fetch) and step.version < _DIVERGING_SINCE


def test_a_session_whose_topic_is_made_anew(readers: tuple[Reader, Reader]) -> None:
    first = Fetch(17, "first", "none", {0: Wanted(0)}, (), True, True, 1 << 20)
    again = Fetch(17, "next", "mine", {}, (), True, True, 1 << 20)
    found = []
    for reader in readers:
        reader.begin()
        found.append([reader.run(first), reader.run(again)])
        reader.make_anew()
        found[-1] += [reader.run(again)[2][0][1:], reader.run(again)[2][0][1:]]
        reader.finish()
    assert found[0] == found[1]
