"""Each anomaly of a sidecar topic, planted into a history without any, is found, and called by its name."""

from collections.abc import Callable

import pytest

from exacta.core.events import BatchStaged, Event, TransactionEnded
from exacta.core.ids import Cause, Offset, PartitionId, ProducerEpoch, ProducerId, TransactionId
from exacta.core.log.staging import FIRST_PROVISIONAL_OFFSET
from simulation.analysis import anomalies
from simulation.analysis_sidecar import entered_records
from simulation.history import Entered, History, Outcome, Partition, Poll

S, T = ("s", 0), ("s", 1)
EARLY, LATE, OTHER, GONE, PLAIN = b"w/1.1:0000", b"w/1.1:0001", b"u/1.1:0000", b"w/1.2:0000", b"p/1.0:0000"


def told(place: int) -> int:
    return FIRST_PROVISIONAL_OFFSET + place


def poll(answer: str, end: int, records: list[tuple[int, bytes]], *, committed: bool, stable: int = -1) -> Poll:
    return Poll("r/1", answer, committed, S, 0, end, 0, end, end if stable < 0 else stable, records)


def clean() -> History:
    """A transaction that has begun first and is committed last, one between, an aborted one, a plain record."""
    history = History(buffers={"s": {"sidecar"}})
    for name, outcome, acknowledged in (
        ("w/1.1", Outcome.COMMITTED, {EARLY: told(0), LATE: told(2)}),
        ("u/1.1", Outcome.COMMITTED, {OTHER: told(1)}),
        ("w/1.2", Outcome.NO_COMMIT, {GONE: told(3)}),
        ("p/1.0", Outcome.PLAIN, {PLAIN: 0}),
    ):
        writing = history.begin(name, outcome)
        writing.values, writing.acknowledged = dict.fromkeys(acknowledged, S), dict(acknowledged)
    committed = {0: PLAIN, 1: OTHER, 2: EARLY, 3: LATE}
    records = [(offset, value, 7) for offset, value in committed.items()]
    history.final[S] = Partition(records=records, committed=committed)
    history.entered[S] = Entered(runs=[(1, 2), (2, 4)], offsets={told(0): 2, told(1): 1, told(2): 3})
    history.polls = [
        poll("1", 2, [(0, PLAIN), (1, OTHER)], committed=False),
        poll("2", 4, [*committed.items()], committed=True),
    ]
    return history


def leave_a_marker(history: History) -> None:
    history.final[S].markers.append((4, 7))


def hold_back(history: History) -> None:
    history.polls[0].last_stable = 1


def show_the_aborted(history: History) -> None:
    history.polls[0].records.append((2, GONE))


def push_the_aborted(history: History) -> None:
    history.pushed_uncommitted.append(("c", S, 4, GONE))


def keep_the_aborted(history: History) -> None:
    history.final[S].records.append((4, GONE, 7))


def tell_an_offset(history: History) -> None:
    history.writings["u/1.1"].acknowledged[OTHER] = 1


def tell_no_offset_in_a_marker_topic(history: History) -> None:
    history.buffers = {}


def tell_a_plain_writer_no_offset(history: History) -> None:
    history.writings["p/1.0"].acknowledged[PLAIN] = told(4)


def interleave(history: History) -> None:
    history.final[S] = Partition(
        records=[(0, PLAIN, 7), (1, EARLY, 7), (2, OTHER, 7), (3, LATE, 7)],
        committed={0: PLAIN, 1: EARLY, 2: OTHER, 3: LATE},
    )


def enter_in_the_order_of_entry(history: History) -> None:
    history.final[S] = Partition(
        records=[(0, PLAIN, 7), (1, EARLY, 7), (2, LATE, 7), (3, OTHER, 7)],
        committed={0: PLAIN, 1: EARLY, 2: LATE, 3: OTHER},
    )
    history.polls.clear()


def enter_twice(history: History) -> None:
    history.entered[S].runs = [(1, 2), (2, 3), (3, 4)]


def enter_before(history: History) -> None:
    history.entered[S].runs.reverse()


def lose(history: History) -> None:
    del history.entered[S].offsets[told(1)]


def test_a_clean_history_has_none() -> None:
    assert anomalies(clean()) == []


@pytest.mark.parametrize(
    ("plant", "called"),
    [
        (leave_a_marker, "has markers"),
        (hold_back, "is held back"),
        (show_the_aborted, "aborted read: r/1 got"),
        (push_the_aborted, "aborted read: c got b'w/1.2:0000'"),
        (keep_the_aborted, "aborted read: b'w/1.2:0000' is at 4"),
        (tell_an_offset, "was told 1 in a topic of"),
        (tell_no_offset_in_a_marker_topic, "in a topic of ['marker']"),
        (tell_a_plain_writer_no_offset, "the writer of b'p/1.0:0000' was told"),
        (interleave, "interleaved"),
        (enter_in_the_order_of_entry, "lost write"),
        (enter_twice, "is not contiguous"),
        (enter_before, "is not behind the one before it"),
        (lose, "lost write"),
    ],
)
def test_a_planted_anomaly_is_found(plant: Callable[[History], None], called: str) -> None:
    history = clean()
    plant(history)
    assert any(each.startswith("sidecar: ") and called in each for each in anomalies(history)), anomalies(history)


def test_an_end_is_seen_in_all_partitions_at_once() -> None:
    history = clean()
    history.writings["w/1.1"].values[b"w/1.1:0002"] = T
    history.final[T] = Partition(records=[(0, b"w/1.1:0002", 7)], committed={0: b"w/1.1:0002"})
    history.entered[T] = Entered(runs=[(0, 1)])
    history.polls.append(Poll("r/1", "2", True, T, 0, 0, 0, 0, 0, []))
    assert any(each.startswith("torn transaction: r/1 saw the end of w/1.1") for each in anomalies(history))


def test_the_events_say_where_staged_records_have_entered() -> None:
    def staged(producer_id: int, place: int, count: int) -> Event:
        return BatchStaged(
            partition_id=PartitionId(0),
            producer_id=ProducerId(producer_id),
            producer_epoch=ProducerEpoch(0),
            stream=PartitionId(5),
            first_index=0,
            provisional_offset=told(place),
            record_count=count,
            size=1,
            max_timestamp_ms=0,
            base_sequence=0,
            at_ms=0,
        )

    def ended(producer_id: int, first_offset: int, count: int, *, committed: bool = True) -> Event:
        entry = (PartitionId(0), Offset(first_offset), ProducerId(producer_id), count)
        return TransactionEnded(
            transaction_id=TransactionId(producer_id),
            producer_ids=(ProducerId(producer_id),),
            producer_epoch=ProducerEpoch(0),
            committed=committed,
            markers=(),
            marker_epoch=ProducerEpoch(0),
            at_ms=0,
            owner=None,
            next_producer_id=ProducerId(-1),
            next_producer_epoch=ProducerEpoch(-1),
            cause=Cause.OWNER,
            entries=(entry,) if committed else (),
        )

    events = [staged(1, 0, 1), staged(2, 1, 2), staged(1, 3, 1), ended(2, 4, 2), staged(3, 4, 1)]
    events += [ended(3, 0, 0, committed=False), ended(1, 6, 2)]
    [found] = entered_records(events).values()
    assert found.runs == [(4, 6), (6, 8)]
    assert found.offsets == {told(1): 4, told(2): 5, told(0): 6, told(3): 7}
