"""Streams that have entered a partition in place are compacted with it, once all of them is sealed."""

from typing import Any

import pytest

from exacta.core.commands import DeleteRecords
from exacta.core.ids import PartitionId
from exacta.core.values.limits import Limits
from exacta.engine import compaction_schedule as compaction
from exacta.engine.snapshot_schedule import FOLD_EVERY_MS
from tests.engine.producer import Producer
from tests.engine.rig import Rig
from tests.engine.test_compaction_schedule import CLEAN_MS, SCHEDULE, SEGMENT_BYTES, fill, noted, put, topic


class SidecarRig(Rig):
    """A broker in which a transaction of two batches enters in place."""

    limits = Limits(transaction_buffer="sidecar", max_held_batches_per_stream=1)


@pytest.fixture
def sidecar() -> Rig:
    return SidecarRig(segment_bytes=SEGMENT_BYTES, schedule=SCHEDULE)


def enter(rig: Rig, *values: bytes) -> None:
    producer = Producer(rig)
    producer.add()
    for value in values:
        producer.write(value)
        rig.settle()
    producer.end()
    rig.settle()


def entered(rig: Rig) -> list[tuple[int, int]]:
    """Return from and to where streams have entered the partition that it still knows of."""
    partition = rig.engine._state.partition("t", 0)
    assert partition is not None
    return [(each.first_offset, each.end_offset) for each in partition.entered]


@pytest.mark.parametrize("restarts", [False, True])
def test_what_has_entered_in_place_is_compacted_with_its_partition(sidecar: Rig, restarts: bool) -> None:
    topic(sidecar)
    put(sidecar, b"a=1;", b"b=1;")
    enter(sidecar, b"a=2;", b"c=1;")
    put(sidecar, b"b=2;")
    enter(sidecar, b"d=1;", b"a=3;")
    fill(sidecar)
    assert entered(sidecar) == [(2, 4), (5, 7)]
    sidecar.loop.pass_time(CLEAN_MS)
    for _ in range(2):
        assert sidecar.records() == b"c=1;b=2;d=1;a=3;"
        assert sidecar.records(4) == b"b=2;d=1;a=3;"
        if restarts:
            sidecar.crash()
    sidecar.loop.pass_time(CLEAN_MS)
    assert entered(sidecar) == []
    assert sidecar.records() == b"c=1;b=2;d=1;a=3;"
    put(sidecar, b"c=2;")
    fill(sidecar)
    sidecar.loop.pass_time(FOLD_EVERY_MS + 3 * CLEAN_MS)
    stored = [row.stream for group in sidecar.storage.groups for row, _ in group.batches]
    assert {stream for stream in stored if stream not in sidecar.engine._state.partitions} == set()
    assert sidecar.failures == []


def test_what_is_not_sealed_of_a_stream_that_has_entered_waits(sidecar: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches behind such a stream wait as well."""
    topic(sidecar, ratio="0")
    enter(sidecar, b"a=1;", b"a=2;")
    put(sidecar, b"a=3;")
    enter(sidecar, b"a=4;", b"b=1;")
    put(sidecar, b"a=5;")
    fill(sidecar)
    compactable = type(sidecar.journal).compactable
    later = entered(sidecar)[1]

    def not_yet(journal: Any, stream: int, end_offset: int) -> tuple[int, int]:
        is_later = stream not in sidecar.engine._state.partitions and stream != first_stream
        return (0, 0) if is_later else compactable(journal, stream, end_offset)

    first_stream = sidecar.engine._state.partitions[PartitionId(0)].entered[0].stream
    monkeypatch.setattr(type(sidecar.journal), "compactable", not_yet)
    sidecar.loop.pass_time(3 * CLEAN_MS)
    assert sidecar.records() == b"a=3;a=4;b=1;a=5;"
    assert entered(sidecar) == [later]
    monkeypatch.undo()
    sidecar.loop.pass_time(3 * CLEAN_MS)
    assert sidecar.records() == b"b=1;a=5;"
    assert entered(sidecar) == []


def test_more_streams_than_are_asked_about_at_one_look_are_compacted_in_the_end(
    sidecar: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_ENTERED", 2)
    topic(sidecar, ratio="0.4")
    for number in range(7):
        enter(sidecar, b"a=%d;" % number, b"b=%d;" % number)
    fill(sidecar)
    sidecar.loop.pass_time(5 * CLEAN_MS)
    assert sidecar.records() == b"a=6;b=6;"
    assert entered(sidecar) == []


def test_what_is_not_asked_about_yet_does_not_seal_segments(sidecar: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart nothing is known of thousands of streams, all of which are old and sealed."""
    monkeypatch.setattr(compaction, "MOST_ENTERED", 2)
    topic(sidecar, ratio="1", segment_ms=str(CLEAN_MS // 2))
    for number in range(7):
        enter(sidecar, b"a=%d;" % number, b"b=%d;" % number)
    fill(sidecar)
    sidecar.crash()
    calls = noted(sidecar, monkeypatch, "seal")
    sidecar.loop.pass_time(5 * CLEAN_MS)
    assert calls == []


def test_a_stream_that_has_entered_seals_a_segment_when_it_is_old_and_no_more_then(
    sidecar: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic(sidecar, segment_ms=str(CLEAN_MS // 2), max_lag_ms="1")
    enter(sidecar, b"a=1;", b"a=2;")
    put(sidecar, b"b=1;")
    calls = noted(sidecar, monkeypatch, "seal")
    sidecar.loop.pass_time(CLEAN_MS)
    assert calls == ["seal"]
    sidecar.append(b"elsewhere", 1)
    sidecar.loop.pass_time(CLEAN_MS)
    assert entered(sidecar) == []
    assert sidecar.records() == b"a=2;b=1;"
    fill(sidecar)
    calls.clear()
    sidecar.loop.pass_time(3 * CLEAN_MS)
    assert calls == []


def test_nothing_is_compacted_across_a_stream_that_a_crash_would_bring_back(sidecar: Rig) -> None:
    """A tombstone must not go before what it stands for."""
    topic(sidecar)
    enter(sidecar, b"a=1;", b"b=1;")
    put(sidecar, b"a=2;", b"a=3;")
    fill(sidecar)
    compactions = sidecar.upkeep._compactions
    sidecar.submit(DeleteRecords(topic="t", partition=0, before_offset=2, allowed=True))
    assert [each for each in compactions.candidates(sidecar.loop.now_ms) if each is not None] == []
    sidecar.settle()
    assert [each for each in compactions.candidates(sidecar.loop.now_ms) if each is not None] != []
