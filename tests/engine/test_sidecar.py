"""Sidecar topics in the engine: what is staged survives, is read where it has entered, and is freed when it may be."""

from collections.abc import Mapping

import pytest

from exacta.core.commands import CreateTopic, DeleteRecords, DeleteTopic, EndTransaction
from exacta.core.ids import PartitionId
from exacta.core.rejections import Rejection
from exacta.core.replies import Appended
from exacta.core.values.limits import Limits
from exacta.engine.upkeep import Retention, Schedule
from tests.engine.compacting import last_values
from tests.engine.producer import Producer
from tests.engine.rig import Rig

CHECK_MS = 10_000
CLEAN_MS = 1_000


def rules(configs: Mapping[str, str]) -> Retention:
    size = configs.get("size")
    return Retention(None, None if size is None else int(size))


SCHEDULE = Schedule(rules=rules, rewriter=last_values, check_interval_ms=CHECK_MS, clean_interval_ms=CLEAN_MS)


class SidecarRig(Rig):
    """A broker with small segments, in which a stream of more than two batches spills."""

    limits = Limits(transaction_buffer="sidecar", max_held_batches_per_stream=2, max_staged_bytes=400)

    def __init__(self) -> None:
        super().__init__(segment_bytes=200, schedule=SCHEDULE)
        self.fill = 0

    def begin(self, size: str | None = None) -> Producer:
        configs = {} if size is None else {"size": size}
        self.ask(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=2, configs=configs))
        return Producer(self, "x")

    def write(self, producer: Producer, *payloads: bytes) -> None:
        for payload in payloads:
            producer.write(payload)
            self.settle()

    def begin_other_segments(self) -> None:
        """Write so much elsewhere that nothing of before lies in the segment that is written to."""
        for _ in range(3):
            self.append(b"-" * 210, 1)
            self.settle()

    @property
    def stored(self) -> bytes:
        """Return all payloads that the storage still has."""
        return b"".join(data for group in self.storage.groups for _, data in group.batches)


@pytest.fixture
def rig() -> SidecarRig:
    return SidecarRig()


HELD, SPILLED = (b"[a]", b"[b]"), (b"[a]", b"[b]", b"[c]", b"[d]")


@pytest.mark.parametrize("payloads", [HELD, SPILLED])
def test_nothing_is_seen_before_the_commit_and_all_of_it_afterwards(rig: SidecarRig, payloads: tuple[bytes]) -> None:
    producer = rig.begin()
    producer.add()
    rig.write(producer, *payloads)
    rig.append(b"[between]")
    rig.settle()
    for read_committed in (True, False):
        assert rig.records(read_committed=read_committed) == b"[between]"
    producer.end()
    rig.settle()
    for read_committed in (True, False):
        assert rig.records(read_committed=read_committed) == b"[between]" + b"".join(payloads)
    rig.append(b"[after]")
    rig.settle()
    assert rig.records() == b"[between]" + b"".join(payloads) + b"[after]"
    assert rig.records(3) == b"".join(payloads[2:]) + b"[after]"


@pytest.mark.parametrize("payloads", [HELD, SPILLED])
@pytest.mark.parametrize("how", ["crash", "snapshot"])
def test_what_is_staged_survives(rig: SidecarRig, payloads: tuple[bytes, ...], how: str) -> None:
    producer = rig.begin()
    producer.add()
    rig.write(producer, *payloads)
    if how == "snapshot":
        rig.close()
    rig.crash()
    producer.end()
    rig.settle()
    assert rig.records() == b"".join(payloads)
    rig.crash()
    assert rig.records() == b"".join(payloads)


@pytest.mark.parametrize("payloads", [HELD, SPILLED])
def test_a_waiting_reader_is_answered_by_the_commit(rig: SidecarRig, payloads: tuple[bytes, ...]) -> None:
    producer = rig.begin()
    producer.add()
    rig.write(producer, *payloads)
    results = rig.fetch(max_wait_ms=1_000)
    rig.settle()
    assert results == []
    producer.end()
    rig.settle()
    assert b"".join(bytes(each) for each in results[0].records) == b"".join(payloads)


def test_a_commit_is_as_small_for_a_long_stream_as_for_a_short_one(rig: SidecarRig) -> None:
    sizes: list[int] = []
    producer = rig.begin()
    for count in (3, 60):
        producer.add()
        rig.write(producer, *[b"x"] * count)
        before = rig.journal.position
        producer.end()
        rig.settle()
        sizes.append(rig.journal.position - before)
    assert sizes[1] <= sizes[0] + 2


def test_what_is_staged_is_kept_while_all_around_it_is_freed(rig: SidecarRig) -> None:
    producer = rig.begin()
    producer.add()
    rig.write(producer, *SPILLED)
    rig.begin_other_segments()
    rig.ask(DeleteRecords(topic="t", partition=1, before_offset=3, allowed=True))
    rig.loop.pass_time(CLEAN_MS * 10)
    assert b"-" * 210 not in rig.stored
    producer.end()
    rig.settle()
    rig.begin_other_segments()
    rig.loop.pass_time(CLEAN_MS * 10)
    assert rig.records() == b"".join(SPILLED)


@pytest.mark.parametrize("how", ["abort", "delete the topic", "delete the records"])
def test_what_is_not_needed_any_more_is_freed(rig: SidecarRig, how: str) -> None:
    producer = rig.begin()
    producer.add()
    rig.write(producer, *SPILLED)
    if how == "abort":
        producer.end(commit=False)
    elif how == "delete the topic":
        rig.ask(DeleteTopic(topic="t"))
        rig.ask(CreateTopic(topic="t", topic_id=b"1" * 16, partition_count=2))
    else:
        producer.end()
        rig.settle()
        rig.ask(DeleteRecords(topic="t", partition=0, before_offset=4, allowed=True))
    rig.begin_other_segments()
    rig.loop.pass_time(CLEAN_MS * 10)
    assert b"[c]" not in rig.stored


def test_nothing_is_freed_whose_abort_may_still_be_lost(rig: SidecarRig) -> None:
    producer = rig.begin()
    producer.add()
    rig.write(producer, *SPILLED)
    rig.begin_other_segments()
    rig.loop.pass_time(CLEAN_MS * 10)
    rig.submit(EndTransaction(**producer.who(), commit=False))
    assert not rig.engine._state.partitions[PartitionId(0)].staged, "it is decided, and not durable yet"
    assert 0 in [floor for stream, floor in rig.upkeep._all_floors().items() if stream > 1]
    rig.settle()
    assert not [stream for stream in rig.upkeep._all_floors() if stream > 1]


@pytest.mark.parametrize("read_committed", [True, False])
def test_a_reader_does_not_pass_over_what_is_not_deleted_durably(rig: SidecarRig, *, read_committed: bool) -> None:
    """A crash would bring it back, and the reader would never get it."""
    producer = rig.begin()
    producer.add()
    rig.write(producer, *SPILLED)
    producer.end()
    rig.append(b"[after]")
    rig.settle()
    rig.submit(DeleteRecords(topic="t", partition=0, before_offset=4, allowed=True))
    assert rig.records(read_committed=read_committed) == b""
    rig.settle()
    assert rig.fetch(0, read_committed=read_committed)[0].rejection is Rejection.OFFSET_OUT_OF_RANGE
    assert rig.records(4, read_committed=read_committed) == b"[after]"


def test_staged_bytes_count_towards_the_size_that_a_partition_keeps(rig: SidecarRig) -> None:
    producer = rig.begin(size="20")
    for _ in range(2):
        rig.append(b"x" * 10)
    rig.settle()
    rig.loop.pass_time(CHECK_MS)
    assert rig.records() == b"x" * 20
    producer.add()
    rig.write(producer, b"y" * 10)
    rig.loop.pass_time(CHECK_MS)
    assert rig.records(1) == b"x" * 10
    seen = rig.engine.visible("t", 0)
    assert seen is not None
    assert seen.log_start_offset == 1


def test_what_would_be_too_much_is_refused_and_an_end_makes_room(rig: SidecarRig) -> None:
    producer = rig.begin()
    producer.add()
    rig.write(producer, b"x" * 399)
    answers = producer.write(b"xx")
    rig.settle()
    assert answers == [Rejection.TOO_MUCH_STAGED]
    producer.end(commit=False)
    rig.settle()
    producer.add()
    answers = producer.write(b"x" * 400, sequence=1)
    rig.settle()
    assert [type(each) for each in answers] == [Appended]
