"""When partitions are compacted, and what of them, by a clock that the test turns."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import pytest

from exacta.core.commands import CreateTopic, DeleteTopic
from exacta.core.ids import PartitionId
from exacta.engine import compaction_schedule as compaction
from exacta.engine.compaction_schedule import CompactionPolicy
from exacta.engine.upkeep import PARTITIONS_AT_ONCE, Retention, Schedule
from exacta.ports.compaction import Rules
from exacta.ports.journal import CompactionOrder, Failed
from tests.engine.compacting import LastValues, last_values
from tests.engine.producer import Producer
from tests.engine.rig import Rig, batch

CLEAN_MS = 1_000
SEGMENT_BYTES = 400
FOR_EVER_MS = 1 << 50


def rules(configs: Mapping[str, str]) -> Retention:
    if "compact" not in configs:
        return Retention()
    numbers = {name: int(value) for name, value in configs.items() if name.endswith(("_ms", "_bytes"))}
    settings = {
        "min_lag_ms": 0,
        "max_lag_ms": FOR_EVER_MS,
        "segment_ms": FOR_EVER_MS,
        "segment_bytes": 1 << 30,
        "delete_retention_ms": 7,
        **numbers,
    }
    return Retention(compacting=CompactionPolicy(min_dirty_ratio=float(configs.get("ratio", "0.5")), **settings))


TOLD: list[Rules] = []


def noting(rules: Rules, slice_number: int = 0, slice_count: int = 1) -> LastValues:
    """Compact, and note the rules."""
    TOLD.append(rules)
    return last_values(rules)


SCHEDULE = Schedule(rules=rules, rewriter=noting, check_interval_ms=1 << 40, clean_interval_ms=CLEAN_MS)


@pytest.fixture
def rig() -> Rig:
    TOLD.clear()
    return Rig(segment_bytes=SEGMENT_BYTES, schedule=SCHEDULE)


def topic(rig: Rig, **configs: str) -> None:
    rig.ask(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=2, configs={"compact": "", **configs}))


def put(rig: Rig, *values: bytes, age_ms: int = 0) -> None:
    for value in values:
        rig.submit(batch(value, 0, timestamp_ms=rig.loop.now_ms - age_ms), payloads=[value])
        rig.settle()


def fill(rig: Rig) -> None:
    """Fill what is written to, from another topic, so that all before it is sealed."""
    if rig.engine.advice.partition_count("other") == 0:
        rig.ask(CreateTopic(topic="other", topic_id=b"1" * 16, partition_count=1))
    for _ in range(2):
        payload = bytes(SEGMENT_BYTES)
        rig.submit(batch(payload, 0, topic="other"), payloads=[payload])
        rig.settle()


def test_of_each_key_the_last_value_stays(rig: Rig) -> None:
    topic(rig)
    put(rig, b"a=1;", b"b=1;", b"a=2;")
    fill(rig)
    assert rig.records() == b"a=1;b=1;a=2;"
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records() == b"b=1;a=2;"
    rig.crash()
    assert rig.records() == b"b=1;a=2;"
    assert [told.delete_retention_ms for told in TOLD] == [7]


def test_what_is_written_to_is_not_compacted(rig: Rig) -> None:
    topic(rig)
    put(rig, b"a=1;", b"a=2;")
    rig.loop.pass_time(CLEAN_MS * 3)
    assert rig.records() == b"a=1;a=2;"


def test_a_topic_that_is_not_compacted_keeps_everything(rig: Rig) -> None:
    rig.ask(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=1))
    put(rig, b"a=1;", b"a=2;")
    fill(rig)
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records() == b"a=1;a=2;"


def test_little_that_is_new_waits_for_more(rig: Rig) -> None:
    topic(rig)
    put(rig, b"a=1;", b"b=1;", b"c=1;", b"d=1;")
    fill(rig)
    rig.loop.pass_time(CLEAN_MS)
    put(rig, b"a=2;")
    fill(rig)
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records() == b"a=1;b=1;c=1;d=1;a=2;", "a fifth of it is new"
    put(rig, b"b=2;", b"c=2;", b"d=2;", b"d=3;")
    fill(rig)
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records() == b"a=2;b=2;c=2;d=3;"


def test_little_that_is_new_does_not_wait_for_ever(rig: Rig) -> None:
    topic(rig, max_lag_ms=str(10 * CLEAN_MS))
    put(rig, b"a=1;", b"b=1;", b"c=1;")
    fill(rig)
    rig.loop.pass_time(CLEAN_MS)
    put(rig, b"a=2;")
    fill(rig)
    rig.loop.pass_time(10 * CLEAN_MS)
    assert rig.records() == b"a=1;b=1;c=1;a=2;"
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records() == b"b=1;c=1;a=2;"


def test_what_is_young_is_safe(rig: Rig) -> None:
    topic(rig, min_lag_ms=str(10 * CLEAN_MS), ratio="0.1")
    put(rig, b"a=1;", b"a=2;", age_ms=20 * CLEAN_MS)
    put(rig, b"a=3;")
    fill(rig)
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records() == b"a=2;a=3;"
    rig.loop.pass_time(10 * CLEAN_MS)
    assert rig.records() == b"a=3;"


def test_an_open_transaction_is_not_compacted(rig: Rig) -> None:
    topic(rig, ratio="0")
    put(rig, b"a=1;", b"a=2;")
    producer = Producer(rig, "x")
    producer.begin(b"a=3;")
    fill(rig)
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records(read_committed=False) == b"a=2;a=3;"
    producer.end(commit=True)
    fill(rig)
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records(read_committed=False).startswith(b"a=3;")


def test_readers_are_told_no_more_of_aborted_records_that_are_gone(rig: Rig) -> None:
    topic(rig)
    put(rig, b"a=1;")
    producer = Producer(rig, "x")
    producer.begin(b"a=aborted;")
    producer.end(commit=False)
    put(rig, b"b=1;")
    fill(rig)
    rig.loop.pass_time(CLEAN_MS)
    assert [len(told.aborted) for told in TOLD] == [1]
    state = rig.engine._state
    partition = state.partition("t", 0)
    assert partition is not None
    assert partition.aborted == []
    assert b"aborted" not in rig.records(read_committed=False)
    rig.crash()
    partition = rig.engine._state.partition("t", 0)
    assert partition is not None
    assert partition.aborted == []


def test_a_crash_before_they_are_forgotten_is_made_up_for(rig: Rig) -> None:
    """Nothing more is compacted before: else a marker might go of which readers still know."""
    topic(rig)
    producer = Producer(rig, "x")
    producer.begin(b"a=aborted;")
    producer.end(commit=False)
    fill(rig)
    told: list[object] = []
    assert rig.engine.lookups.count_unaborted(PartitionId(0), 0, 2) == 0
    compactions = rig.upkeep._compactions
    found = [each for each in compactions.candidates(rig.loop.now_ms) if each is not None]
    rig.journal.compact(compactions.orders(found), dict.fromkeys(range(9), 0), noting, told.append)
    rig.settle()
    assert told == [None]
    assert rig.engine.lookups.count_unaborted(PartitionId(0), 0, 2) == 0, "what is gone is not taken away once more"
    rig.crash()
    TOLD.clear()
    put(rig, *(b"b=%d;" % number for number in range(20)))
    fill(rig)
    rig.loop.pass_time(CLEAN_MS)
    assert [told.aborted for told in TOLD] == [()]


def test_what_waits_for_long_begins_another_file(rig: Rig) -> None:
    topic(rig, segment_ms=str(5 * CLEAN_MS))
    put(rig, b"a=1;", b"a=2;")
    rig.loop.pass_time(4 * CLEAN_MS)
    put(rig, b"b=1;")
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records() == b"a=1;a=2;b=1;"
    put(rig, b"b=2;")
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records() == b"a=2;b=1;b=2;"


def test_much_begins_another_file(rig: Rig) -> None:
    topic(rig, segment_bytes="10")
    put(rig, b"a=1;", b"a=2;", b"a=3;")
    rig.loop.pass_time(CLEAN_MS)
    put(rig, b"b=1;")
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records() == b"a=3;b=1;"


def noted(rig: Rig, monkeypatch: pytest.MonkeyPatch, *names: str) -> list[str]:
    """Note which of these the journal is asked to do."""
    calls: list[str] = []

    def noting(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            calls.append(name)
            return call(*args)

        return noted

    for name in names:
        monkeypatch.setattr(rig.journal, name, noting(name, getattr(rig.journal, name)))
    return calls


@pytest.mark.parametrize("bound", ["MOST_BYTES", "MOST_STREAMS"])
def test_space_is_freed_between_two_compactions(rig: Rig, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    """Where something is always due, the disk would fill."""
    topic(rig)
    for partition in range(2):
        payload = b"a=1;"
        rig.submit(batch(payload, partition, timestamp_ms=rig.loop.now_ms), payloads=[payload])
        rig.settle()
    fill(rig)
    monkeypatch.setattr(compaction, bound, 0)
    calls = noted(rig, monkeypatch, "compact", "clean")
    rig.loop.pass_time(CLEAN_MS)
    assert [name for name, _ in groupby(calls)] == ["compact", "clean", "compact", "clean"]


def test_few_partitions_are_looked_at_in_one_turn_of_the_loop(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.ask(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=3 * PARTITIONS_AT_ONCE, configs={"compact": ""}))
    calls = noted(rig, monkeypatch, "sealed_to")
    rig.upkeep._clean()
    looked = [len(calls)]
    while rig.loop.ready:
        rig.loop.turn()
        looked.append(len(calls))
    assert looked[:3] == [PARTITIONS_AT_ONCE, 2 * PARTITIONS_AT_ONCE, 3 * PARTITIONS_AT_ONCE]


def test_a_topic_that_is_deleted_meanwhile_is_not_compacted(rig: Rig) -> None:
    topic(rig)
    put(rig, b"a=1;", b"a=2;")
    fill(rig)
    compactions = rig.upkeep._compactions
    found = [each for each in compactions.candidates(rig.loop.now_ms) if each is not None]
    assert len(compactions.orders(found)) == 1
    rig.ask(DeleteTopic(topic="t"))
    assert compactions.orders(found) == []


def test_a_partition_that_cannot_be_compacted_does_not_hold_up_another(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic(rig)
    for partition in range(2):
        for payload in (b"a=1;", b"a=2;"):
            rig.submit(batch(payload, partition, timestamp_ms=rig.loop.now_ms), payloads=[payload])
            rig.settle()
    fill(rig)
    compact = rig.journal.compact

    def failing(orders: Sequence[CompactionOrder], floors: Any, rewriter: Any, done: Callable[..., None]) -> None:
        if any(order.stream == 0 for order in orders):
            rig.loop.call_soon(done, Failed("no room"))
        else:
            compact(orders, floors, rewriter, done)

    monkeypatch.setattr(rig.journal, "compact", failing)
    rig.loop.pass_time(3 * CLEAN_MS)
    assert (rig.records(partition=0), rig.records(partition=1)) == (b"a=1;a=2;", b"a=2;")


def test_a_compaction_that_fails_is_tried_again(rig: Rig) -> None:
    topic(rig)
    put(rig, b"a=1;", b"a=2;")
    fill(rig)
    rig.storage.clean_fault = "broken"
    rig.loop.pass_time(CLEAN_MS * 2)
    assert rig.records() == b"a=1;a=2;"
    rig.storage.clean_fault = None
    rig.loop.pass_time(CLEAN_MS)
    assert rig.records() == b"a=2;"
    assert rig.failures == []
