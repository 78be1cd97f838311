"""Retention by time and size, and the freeing of space, by a clock that the test turns."""

from collections.abc import Callable, Mapping

import pytest

from exacta.core.commands import CreateTopic, DeleteTopic, EndTransaction, SetTopicConfigs
from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.core.rejections import Rejection
from exacta.engine.upkeep import PARTITIONS_AT_ONCE, Retention, Schedule
from exacta.ports.journal import Cleaned, Failed
from tests.engine.compacting import last_values
from tests.engine.producer import Producer
from tests.engine.rig import Rig, batch

CHECK_MS = 10_000
CLEAN_MS = 1_000


def rules(configs: Mapping[str, str]) -> Retention:
    time, size = configs.get("time"), configs.get("size")
    return Retention(None if time is None else int(time), None if size is None else int(size))


SCHEDULE = Schedule(rules=rules, rewriter=last_values, check_interval_ms=CHECK_MS, clean_interval_ms=CLEAN_MS)


@pytest.fixture
def rig() -> Rig:
    return Rig(segment_bytes=200, schedule=SCHEDULE)


def topic(rig: Rig, **configs: str) -> None:
    rig.ask(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=2, configs=configs))


def append(
    rig: Rig, payload: bytes = b"x" * 10, *, partition: int = 0, age_ms: int = 0, timestamp_ms: int = -2
) -> None:
    time_ms = rig.loop.now_ms - age_ms if timestamp_ms == -2 else timestamp_ms
    rig.submit(batch(payload, partition, timestamp_ms=time_ms), payloads=[payload])
    rig.settle()


def start_offset(rig: Rig, partition: int = 0) -> int:
    seen = rig.engine.visible("t", partition)
    assert seen is not None
    return seen.log_start_offset


def test_what_is_too_old_goes_at_the_next_check(rig: Rig) -> None:
    topic(rig, time="50000")
    for age_ms in (60_000, 45_000, 10_000):
        append(rig, age_ms=age_ms)
    rig.loop.pass_time(CHECK_MS - 1)
    assert start_offset(rig) == 0
    rig.loop.pass_time(1)
    assert start_offset(rig) == 2, "the second one has become too old meanwhile"
    rig.loop.pass_time(CHECK_MS * 3)
    assert start_offset(rig) == 2
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 3, "nothing is kept for being the last"
    rig.crash()
    assert start_offset(rig) == 3


def test_what_is_as_old_as_allowed_stays(rig: Rig) -> None:
    topic(rig, time="50000")
    append(rig, timestamp_ms=rig.loop.now_ms + CHECK_MS - 50_000)
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 0
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 1


def test_older_records_behind_a_young_one_stay_with_it(rig: Rig) -> None:
    topic(rig, time="50000")
    for age_ms in (60_000, 0, 60_000):
        append(rig, age_ms=age_ms)
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 1


def test_records_without_a_time_are_never_too_old(rig: Rig) -> None:
    topic(rig, time="0")
    append(rig, timestamp_ms=-1)
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 0


def test_each_partition_goes_by_its_own_records(rig: Rig) -> None:
    topic(rig, time="50000")
    append(rig, age_ms=60_000)
    append(rig, partition=1)
    rig.loop.pass_time(CHECK_MS)
    assert (start_offset(rig, 0), start_offset(rig, 1)) == (1, 0)


@pytest.mark.parametrize(("size", "start"), [(0, 5), (9, 4), (10, 4), (11, 3), (35, 1), (50, 0), (60, 0)])
def test_of_what_is_too_much_the_oldest_goes_and_the_size_asked_for_stays(rig: Rig, size: int, start: int) -> None:
    topic(rig, size=str(size))
    for _ in range(5):
        append(rig)
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == start


def test_time_and_size_each_count(rig: Rig) -> None:
    topic(rig, time="50000", size="25")
    for age_ms in (60_000, 60_000, 60_000, 60_000, 0):
        append(rig, age_ms=age_ms)
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 4
    for _ in range(5):
        append(rig)
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 7


def test_an_open_transaction_keeps_its_records_and_what_follows(rig: Rig) -> None:
    topic(rig, time="0", size="0")
    append(rig, age_ms=1)
    producer = Producer(rig)
    producer.begin(b"a")
    append(rig, age_ms=1)
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 1
    producer.end()
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 4


def test_without_a_bound_all_is_kept(rig: Rig) -> None:
    topic(rig)
    append(rig, timestamp_ms=0)
    rig.loop.pass_time(CHECK_MS * 5)
    assert start_offset(rig) == 0


def test_a_changed_configuration_counts_at_the_next_check(rig: Rig) -> None:
    topic(rig)
    append(rig, age_ms=60_000)
    rig.loop.pass_time(CHECK_MS)
    rig.ask(SetTopicConfigs(topic="t", configs={"time": "50000"}))
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 1


def test_many_partitions_take_several_turns_of_the_loop(rig: Rig) -> None:
    count = PARTITIONS_AT_ONCE * 2 + 1
    rig.ask(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=count, configs={"time": "0"}))
    for partition in range(count):
        append(rig, partition=partition, age_ms=1)
    rig.loop.pass_time(CHECK_MS)
    assert [start_offset(rig, partition) for partition in range(count)] == [1] * count


def test_a_topic_deleted_in_the_midst_of_it_harms_nothing(rig: Rig) -> None:
    rig.ask(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=PARTITIONS_AT_ONCE * 2, configs={"time": "0"}))
    append(rig, age_ms=1)
    rig.loop.now_ms += CHECK_MS
    due = [entry for entry in rig.loop.later if entry[0] <= rig.loop.now_ms]
    for entry in due:
        rig.loop.later.remove(entry)
        entry[2]()
    rig.submit(DeleteTopic(topic="t"))
    rig.settle()
    assert not rig.failures
    rig.loop.pass_time(CHECK_MS)
    assert not rig.failures


def test_a_life_with_a_clock_far_ahead_stops_no_later_retention(rig: Rig) -> None:
    """Deadlines go on from then; markers, which lie among the records, have the time that it is."""
    ahead_ms = 10 * 365 * 24 * 3_600_000
    rig.loop.now_ms += ahead_ms
    Producer(rig)
    rig.loop.now_ms -= ahead_ms
    rig.crash()
    assert rig.engine.now_ms() >= rig.loop.now_ms + ahead_ms - 1000
    topic(rig, time="50000")
    producer = Producer(rig)
    for _ in range(3):
        producer.begin(b"a")
        producer.end()
    rig.loop.pass_time(60_000)
    assert start_offset(rig) == 6


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_an_engine_that_stops_in_the_midst_of_it_stops(rig: Rig, turns: int) -> None:
    count = PARTITIONS_AT_ONCE * 4
    rig.ask(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=count, configs={"time": "0"}))
    for partition in range(count):
        append(rig, partition=partition, age_ms=1)
    rig.loop.now_ms += CHECK_MS
    for entry in [entry for entry in rig.loop.later if entry[0] <= rig.loop.now_ms]:
        rig.loop.later.remove(entry)
        entry[2]()
    for _ in range(turns):
        rig.loop.turn()
    rig.close()
    rig.journal.close()
    rig.loop.settle()
    assert not rig.failures


# --- freeing space ----------------------------------------------------------------------------------------------------


class Cleanings:
    """What the engine asked of the journal, and was answered."""

    def __init__(self, rig: Rig) -> None:
        self.asked: list[dict[int, int]] = []
        self.freed: list[Cleaned | Failed] = []
        self._clean = rig.journal.clean
        rig.journal.clean = self.clean  # type: ignore[method-assign]

    def clean(self, floors: Mapping[int, int], done: Callable[[Cleaned | Failed], None]) -> None:
        def noted(result: Cleaned | Failed) -> None:
            self.freed.append(result)
            done(result)

        self.asked.append(dict(floors))
        self._clean(floors, noted)


def test_the_space_of_what_was_deleted_is_freed(rig: Rig) -> None:
    topic(rig, time="50000")
    for age_ms in (60_000, 60_000, 0):
        append(rig, bytes(100), age_ms=age_ms)
    rig.loop.pass_time(CHECK_MS)
    for _ in range(6):  # rolls, and so a snapshot is wanted
        append(rig, bytes(100), partition=1)
    cleanings = Cleanings(rig)
    rig.loop.pass_time(CLEAN_MS)
    assert cleanings.asked[0] == {0: 2, 1: 0}
    assert cleanings.freed[0].freed_bytes > 200  # type: ignore[union-attr]
    assert cleanings.freed[-1].freed_bytes == 0  # type: ignore[union-attr]
    rig.crash()
    assert rig.records(2) == bytes(100)


def test_it_is_not_asked_for_where_nothing_can_have_changed(rig: Rig) -> None:
    topic(rig)
    cleanings = Cleanings(rig)
    rig.loop.pass_time(CLEAN_MS * 3)
    assert len(cleanings.asked) == 1
    append(rig)
    rig.loop.pass_time(CLEAN_MS * 3)
    assert len(cleanings.asked) == 1
    rig.ask(DeleteTopic(topic="t"))
    rig.loop.pass_time(CLEAN_MS * 3)
    assert cleanings.asked[1:] == [{}]


def test_a_deletion_that_is_not_durable_frees_nothing(rig: Rig) -> None:
    topic(rig)
    append(rig)
    cleanings = Cleanings(rig)
    rig.loop.pass_time(CLEAN_MS)
    rig.submit(DeleteTopic(topic="t"))
    rig.loop.now_ms += CLEAN_MS
    for entry in [entry for entry in rig.loop.later if entry[0] <= rig.loop.now_ms]:
        entry[2]()
    assert cleanings.asked == [{0: 0, 1: 0}]


def test_after_a_failure_it_is_tried_again(rig: Rig) -> None:
    topic(rig)
    cleanings = Cleanings(rig)
    rig.storage.clean_fault = "broken"
    rig.loop.pass_time(CLEAN_MS)
    assert cleanings.freed == [Failed("broken")]
    rig.storage.clean_fault = None
    rig.loop.pass_time(CLEAN_MS)
    assert len(cleanings.freed) == 2
    assert not rig.failures


def test_what_a_reader_asks_for_below_the_start_is_out_of_range(rig: Rig) -> None:
    topic(rig, time="0")
    append(rig, age_ms=1)
    rig.loop.pass_time(CHECK_MS)
    (result,) = rig.fetch(0)
    assert result.rejection is Rejection.OFFSET_OUT_OF_RANGE


def test_a_repeat_of_what_was_deleted_is_still_a_repeat(rig: Rig) -> None:
    topic(rig, time="0")
    producer = Producer(rig)
    producer.begin(b"a")
    producer.end()
    rig.loop.pass_time(CHECK_MS)
    assert start_offset(rig) == 2
    pair = producer.pair
    ended = rig.ask(
        EndTransaction(
            transactional_id="x",
            producer_id=ProducerId(pair[0]),
            producer_epoch=ProducerEpoch(pair[1]),
            commit=True,
        )
    )
    assert not isinstance(ended, Rejection)
