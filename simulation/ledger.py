"""The broker's decisions over all of its lives, and how much of them no crash may take away.

Owns invariant 8: what is recovered is the state of a prefix of all that was decided, and of one that holds everything
durable; where only the process died, everything written. Knows positions of the journal as marks between events.
"""

from collections.abc import Callable, Sequence

from exacta.core.apply import apply
from exacta.core.events import BatchAppended, BatchStaged, Event, StagedStreamSpilled, TransactionEnded
from exacta.core.ids import Body, TransactionId
from exacta.core.snapshot import is_same
from exacta.core.state.state import State
from exacta.core.values.limits import Limits
from exacta.ports.journal import IndexEntry
from exacta.protocol.kafka.records import parse_batch_header
from simulation.clients.batches import highest_time
from simulation.written_batches import Written

MAGIC_AT = 16
"""The place of the magic byte in a batch's header."""

Complain = Callable[[str], None]


class Ledger:
    """The events that led to the present state, durable ones only, and the journal's positions among them."""

    def __init__(self, complain: Complain, *, has_records: bool = True) -> None:
        """Begin; without `has_records` the batches are made up, and their records are not looked at."""
        self._has_records = has_records
        self.events: list[Event] = []
        self.batches = Written()
        self._complain = complain
        self._marks: dict[int, int] = {0: 0}
        self.durable_position = 0
        self.written_position = 0
        self.lost_handles: set[TransactionId] = set()
        """Handles that a recovery has found open when writes may have been missing: none of them may commit."""

    def copy(self, complain: Complain, *, durable: int, written: int) -> "Ledger":
        """Return what it was when so much had been promised."""
        other = Ledger(complain, has_records=self._has_records)
        other.events = list(self.events)
        other._marks = dict(self._marks)
        other.lost_handles = set(self.lost_handles)
        other.batches = self.batches.copy()
        other.durable_position, other.written_position = durable, written
        return other

    def decided(self, event: Event) -> None:
        """Note an event that was applied, and will be written."""
        self.events.append(event)

    def framed(self, position: int, entry_count: int, end: int) -> None:
        """Note a group that is about to be written from one position to another."""
        self._marks[end] = self._marks[position] + entry_count

    def framed_entry(self, event: Event, rows: Sequence[IndexEntry], payload: bytes) -> None:
        """Note what is about to be written with an event; a batch must have the event's body and time."""
        if isinstance(event, BatchStaged):
            self._look_at_batch(event, event.batch if event.is_held else payload)
            self.batches.stage(event, payload)
        elif isinstance(event, StagedStreamSpilled | TransactionEnded):
            bring_in = self.batches.spill if isinstance(event, StagedStreamSpilled) else self.batches.end
            for violation in bring_in(event, rows, payload):  # type: ignore[arg-type]
                self._complain(violation)
        elif isinstance(event, BatchAppended):
            for row in rows:
                self._look_at_batch(event, payload[row.start : row.start + row.size])
                self.batches.note(row, payload)

    def _look_at_batch(self, event: BatchAppended | BatchStaged, batch: bytes) -> None:
        """Complain where a batch is another one than its event says: look-ups and retention go by the event."""
        if batch[MAGIC_AT] != event.body:
            self._complain(f"bodies: {event} has a batch of magic {batch[MAGIC_AT]}, its body is {event.body}")
        elif not self._has_records or event.body != Body.KAFKA:
            return
        elif not (header := parse_batch_header(batch)).log_append_time:
            times_ms = event.max_timestamp_ms, header.max_timestamp, highest_time(batch)
            if len(set(times_ms)) > 1:
                self._complain(f"times: {event} and its batch say {times_ms[:2]}, and its records {times_ms[2]}")

    def written(self, position: int) -> None:
        """Note what outlives the process."""
        self.written_position = max(self.written_position, position)

    def durable(self, position: int) -> None:
        """Note what outlives the machine's run."""
        self.written(position)
        self.durable_position = max(self.durable_position, position)

    def count_at(self, position: int) -> int:
        """Return how many events come before a position."""
        return self._marks[position]

    def recovered(self, position: int, state: State, *, machine_stopped: bool) -> None:
        """Compare what was recovered with what was decided; go on from there."""
        promised = self.durable_position if machine_stopped else self.written_position
        if position < promised:
            what = "durable" if machine_stopped else "written"
            self._complain(f"8: recovered up to {position}, and {promised} was {what}")
        count = self._marks.get(position)
        if count is None:
            self._complain(f"8: recovered up to {position}, where no group ended")
            return
        del self.events[count:]
        self.batches.recovered(self.events)
        self._marks = {mark: number for mark, number in self._marks.items() if mark <= position}
        self.written_position = self.durable_position = position  # recovery has synced what it believes
        again = self.folded(state.limits)
        if not is_same(again, state):
            self._complain(f"8: what was recovered at {position} is not the fold of what was decided")

    def folded(self, limits: Limits) -> State:
        """Return the state that all events lead to."""
        state = State(limits=limits)
        for event in self.events:
            apply(state, event)
        return state
