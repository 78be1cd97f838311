"""The lag of a group, in records that its readers get: the part of it that the state knows without the log.

Owns positions, offsets, the transactions that hold the rest back, and the places of aborted records. A partition's
offsets also number markers and aborted records, which no read_committed reader gets, so the difference of two offsets
is not exact. The engine's look-ups count the records in the log (markers hold none) and subtract the aborted ones that
are still there, which is those beyond the end of compaction:

    visible in [a, b), b up to the last stable offset
        =  records in [a, b)  -  aborted_records(partition, max(a, compacted_to), b)
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from exacta.core.ids import Offset, PartitionId
from exacta.core.state.aborted import aborted_between
from exacta.core.state.group import Group
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.transaction import name_of
from exacta.readmodel.groups import BlockingTransaction, Lag

MAX_OPEN_TRANSACTIONS = 100
"""The number of a partition's oldest transactions that are named: the first alone holds back what follows it."""


class CountedPartition(Struct, frozen=True):
    """One partition of a group, and from where on its records are to be counted."""

    partition_id: PartitionId
    next_offset: Offset
    """The offset at which the group reads on: its position, or the first record if it has none or that one is gone."""
    lag: Lag
    """The partition, in which nothing is counted yet."""


def aborted_records(partition: Partition, from_offset: int, end_offset: int) -> int:
    """Count the aborted records in [from_offset, end_offset)."""
    total = 0
    for entry in aborted_between(partition, Offset(from_offset), Offset(end_offset)):
        runs = entry.runs
        for first, last in zip(runs[::2], runs[1::2], strict=True):
            total += max(0, min(last + 1, end_offset) - max(first, from_offset))
    return total


def visible_end(count_from: Callable[[int], int], start: int, end: int) -> int:
    """Return the offset after the last visible record before `end`, or `start` if there is none from there on.

    `count_from(offset)` counts the visible records in [offset, end). Mostly a marker or two at the end are not visible,
    so the search begins at the end, in steps that double.
    """
    found, step = end, 1
    while True:
        if found <= start:
            return start
        probe = max(start, end - step)
        if count_from(probe):
            break
        found, step = probe, step * 2
    while found - probe > 1:  # there is something from `probe` on, and nothing from `found` on
        middle = (probe + found) // 2
        if count_from(middle):
            probe = middle
        else:
            found = middle
    return found


def visible_begin(count_from: Callable[[int], int], start: int, end: int) -> int:
    """Return the offset of the first visible record from `start` on, or `end` if there is none.

    `count_from` is as for `visible_end`. Mostly the first offset, or the one after a marker, is visible, so that the
    search begins there, in steps that double.
    """
    total = count_from(start)
    if not total:
        return end
    found, step = start, 1
    while found + step < end and count_from(found + step) == total:
        found, step = found + step, step * 2
    beyond = min(found + step, end)
    while beyond - found > 1:  # nothing lies between `start` and `found`, and something between `found` and `beyond`
        middle = (found + beyond) // 2
        if count_from(middle) == total:
            found = middle
        else:
            beyond = middle
    return found


def lag_of_group(
    state: State, now_ms: int, group_id: str, places: Iterable[tuple[str, int]] | None = None
) -> Iterator[CountedPartition]:
    """Yield the partitions in which the group has a position, or will have one if an open transaction commits.

    `places` are some of them; None: all.
    """
    for partition, committed_offset, is_pending in positions_of_group(state, group_id, places):
        shown = Lag(
            topic=partition.topic,
            partition=partition.index,
            committed_offset=None if committed_offset < 0 else committed_offset,
            commit_is_pending=is_pending,
            log_start_offset=partition.log_start_offset,
            last_stable_offset=partition.last_stable_offset,
            high_watermark=partition.next_offset,
            held_by=tuple(blocking_transactions(state, now_ms, partition)),
        )
        yield CountedPartition(partition.partition_id, Offset(max(committed_offset, partition.log_start_offset)), shown)


def places_of_group(state: State, group_id: str) -> list[tuple[str, int]]:
    """Return the same partitions by topic and index, in their order."""
    group = state.groups.get(group_id)
    return [] if group is None else sorted(_pending(group) | _known(group))


def positions_of_group(
    state: State, group_id: str, places: Iterable[tuple[str, int]] | None = None
) -> Iterator[tuple[Partition, int, bool]]:
    """Yield the same partitions, with the position of the group (-1: it has none), and whether that is going to move.

    An open transaction moves it if it commits.
    """
    group = state.groups.get(group_id)
    if group is None:
        return
    pending = _pending(group)
    for topic, index in sorted(pending | _known(group)) if places is None else places:
        partition = state.partition(topic, index)
        if partition is not None:
            committed = group.offsets.get(topic, {}).get(index)
            yield partition, -1 if committed is None else committed.offset, (topic, index) in pending


def _pending(group: Group) -> set[tuple[str, int]]:
    return {
        (topic, index) for offsets in group.pending.values() for topic, indexes in offsets.items() for index in indexes
    }


def _known(group: Group) -> set[tuple[str, int]]:
    return {(topic, index) for topic, indexes in group.offsets.items() for index in indexes}


def blocking_transactions(state: State, now_ms: int, partition: Partition) -> Iterator[BlockingTransaction]:
    """Yield the oldest open transactions that have written to the partition."""
    oldest = list(partition.open_transactions.items())[:MAX_OPEN_TRANSACTIONS]
    for producer_id, first_offset in oldest:
        transaction = state.volatile.transaction_by_producer.get(producer_id)
        if transaction is not None:
            yield BlockingTransaction(
                transactional_id=name_of(transaction),
                first_offset=first_offset,
                open_for_ms=max(0, now_ms - transaction.start_ms),
            )
