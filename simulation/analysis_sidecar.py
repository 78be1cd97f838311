"""The promises of sidecar topics: what a transaction has staged enters its partition whole, or no reader ever sees it.

Owns what is asked of topics in which transactions lie aside until they commit (`core.log.staging`): no reader of either
isolation gets a record of an open or aborted transaction, and none stands still because of one. There is no marker.
What a transaction has staged in a partition lies there together, and transactions lie in the order of their commits.
The events of the journal say in which order that is, and where each staged record has entered (`entered_records`).
"""

from collections.abc import Iterable, Iterator

from exacta.core.events import BatchStaged, Event, TransactionEnded
from exacta.core.ids import PartitionId, ProducerId
from exacta.core.log.staging import is_provisional
from exacta.core.values.transaction_buffer import MARKER, SIDECAR
from simulation.history import Entered, History, Outcome, Place, whose


def entered_records(events: Iterable[Event]) -> dict[PartitionId, Entered]:
    """Return where what was staged has entered, by partition."""
    waiting: dict[tuple[PartitionId, ProducerId], list[tuple[int, int]]] = {}
    found: dict[PartitionId, Entered] = {}
    for event in events:
        if isinstance(event, BatchStaged):
            told = event.provisional_offset, event.record_count
            waiting.setdefault((event.partition_id, event.producer_id), []).append(told)
        elif isinstance(event, TransactionEnded):
            for partition_id, first_offset, producer_id, count in event.entries:
                offset: int = first_offset
                entered = found.setdefault(partition_id, Entered())
                entered.runs.append((offset, offset + count))
                for provisional, length in waiting.get((partition_id, producer_id), ()):
                    entered.offsets.update({provisional + k: offset + k for k in range(length)})
                    offset += length
            waiting = {key: told for key, told in waiting.items() if key[1] not in event.producer_ids}
    return found


def sidecar_anomalies(history: History) -> Iterator[str]:
    """Yield what is wrong with what was staged."""
    yield from _told(history)
    yield from _seen(history)
    for place, entered in history.entered.items():
        if place in history.final:
            yield from _runs(history, place, entered)
    for place, final in history.final.items():
        if history.buffers.get(place[0]) == {SIDECAR}:
            written = history.written.get(place, final)
            if written.markers or final.markers:
                yield f"sidecar: {place} has markers at {(written.markers or final.markers)[:3]}"
            if odd := [value for offset, value, _ in final.records if offset not in final.committed]:
                yield f"sidecar: readers of uncommitted records get {odd[:3]!r} of {place}, which are not committed"


def _told(history: History) -> Iterator[str]:
    """Check that who writes in a transaction is told an offset where there is a marker, and none where it is staged."""
    for writing in history.writings.values():
        for value, offset in writing.acknowledged.items():
            buffers = history.buffers.get(writing.values[value][0], {MARKER})
            if writing.outcome is Outcome.PLAIN:
                is_right = not is_provisional(offset)
            else:
                is_right = (SIDECAR if is_provisional(offset) else MARKER) in buffers
            if not is_right:
                yield f"sidecar: the writer of {value!r} was told {offset} in a topic of {sorted(buffers)}"


def _seen(history: History) -> Iterator[str]:
    """Check that nobody has seen what was staged and aborted, and that nobody had to wait for an open transaction."""
    aborted = {
        value
        for writing in history.writings.values()
        if writing.outcome is Outcome.NO_COMMIT
        for value, place in writing.values.items()
        if is_provisional(writing.acknowledged.get(value, 0)) or history.buffers.get(place[0]) == {SIDECAR}
    }
    for poll in history.polls:
        for offset, value in poll.records:
            if value in aborted:
                how = "committed" if poll.committed else "uncommitted"
                yield f"sidecar: aborted read: {poll.reader} got {value!r} at {offset} of {poll.place}, reading {how}"
        if history.buffers.get(poll.place[0]) == {SIDECAR} and poll.last_stable < poll.high_watermark:
            yield f"sidecar: {poll.reader} is held back: it was told {poll}"
    for consumer, place, offset, value in (*history.pushed, *history.pushed_uncommitted):
        if value in aborted:
            yield f"sidecar: aborted read: {consumer} got {value!r} from {place} at {offset}"
    for place, final in history.final.items():
        for offset, value, _ in final.records:
            if value in aborted:
                yield f"sidecar: aborted read: {value!r} is at {offset} of {place}"


def _runs(history: History, place: Place, entered: Entered) -> Iterator[str]:
    """Check that each run holds what one transaction has staged, all of it, in the order of the commits."""
    final = history.written.get(place, history.final[place])
    there = {offset: value for offset, value, _ in final.records}
    runs_of: dict[str, set[tuple[int, int]]] = {}
    before = 0
    for first, end in entered.runs:
        if first < before:
            yield f"sidecar: in {place} the transaction from {first} to {end} is not behind the one before it"
        before = end
        names = {whose(there[offset]) for offset in range(first, end) if offset in there}
        if len(names) > 1:
            yield f"sidecar: interleaved: {sorted(names)} lie between {first} and {end} of {place}"
        for name in names:
            runs_of.setdefault(name, set()).add((first, end))
    yield from (
        f"sidecar: {name} is not contiguous in {place}: it lies in {sorted(runs)}"
        for name, runs in runs_of.items()
        if len(runs) > 1
    )
    for writing in history.writings.values():
        for value, provisional in writing.acknowledged.items():
            if writing.values[value] != place or not is_provisional(provisional):
                continue
            offset = entered.offsets.get(provisional)
            log_start = history.final[place].log_start
            is_there = offset is not None and offset >= log_start and there.get(offset) == value
            if writing.outcome is Outcome.COMMITTED and not is_there and (offset is None or offset >= log_start):
                found = None if offset is None else there.get(offset)
                yield f"sidecar: lost write: {value!r} has entered {place} at {offset}, where {found!r} is"
