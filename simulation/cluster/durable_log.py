"""The durable log of a world, and what each broker makes of it: a second fold, beside those of leaders and followers.

What brokers append is noted when they try, with the state that they have then. What any of them says is durable must be
one of those groups, behind what was durable before. It is folded here, and all brokers are compared with that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b

from msgspec import Struct

from exacta.core.apply import apply
from exacta.core.event_codec import decode_event
from exacta.core.events import Event, LeadTaken
from exacta.core.ids import PartitionId
from exacta.core.snapshot import after_recovery, restore, snapshot
from exacta.core.state.state import State
from exacta.core.transactions.expiry import latest_noted_ms
from exacta.core.values.limits import Limits
from exacta.engine.visible import visible_changes
from exacta.ports.log import Visible
from simulation.invariants.bounds import tables_are_counted
from simulation.invariants.invariants import violations

Complain = Callable[[str], None]
CHECKED_EVERY = 60
"""A broker's state is held against all invariants whenever it has had this number of events more,"""
CHECKED_UP_TO = 240
"""as long as there are no more than this; and in the end. They take time that grows with the square."""


class _Attempt(Struct, frozen=True):
    """A group that some leader has tried to append."""

    who: str
    end: int
    events: Sequence[bytes]
    state: bytes
    """The digest of the leader's state with these events."""


class _Group(Struct, frozen=True):
    """A group that is durable, and the digests of what is to be known at its end."""

    end: int
    events: Sequence[bytes]
    count: int
    """The number of events up to its end."""
    state: bytes
    seen: bytes
    """The digest of what readers see then."""


class DurableLog:
    """Compare what all brokers of a world have with one log."""

    def __init__(self, limits: Limits, complain: Complain) -> None:
        self.end = 0
        """The end of what some broker has shown or was told is durable."""
        self.events: list[Event] = []
        self.state = State(limits=limits)
        self.durable_truly: Callable[[], int] = lambda: 0
        """Returns the position up to which no failover can take anything away."""
        self._complain = complain
        self._attempts: dict[int, list[_Attempt]] = {}
        self._groups: dict[int, _Group] = {}
        self._at: dict[int, _Group] = {0: _Group(0, (), 0, _state_digest(self.state), _seen_digest({}))}
        self._checked: dict[str, int] = {}
        self._latest_ms = -1

    # --- what brokers do ----------------------------------------------------------------------------------------------

    def try_to_append(self, who: str, begin: int, end: int, events: Sequence[bytes], state: State) -> None:
        """Hear that a leader appends a group, which its state has already."""
        self._attempts.setdefault(begin, []).append(_Attempt(who, end, events, _state_digest(state)))

    def begins(self, who: str, end: int, events: Sequence[bytes], state: State) -> None:
        """Hear that a broker has read the log up to here; `events` are those behind its snapshot."""
        if end > self.end:
            for way in self._ways(end):
                named = [event for attempt in way for event in attempt.events]
                if list(events[len(events) - len(named) :]) == named:
                    for attempt in way:
                        self._go_on(who, attempt)
                    break
            else:
                self._complain(f"logs differ: {who} begins with {end}, which does not follow {self.end}")
                return
        self.compare(who, end, state, None)

    def grows(self, who: str, begin: int, end: int, events: Sequence[bytes]) -> None:
        """Hear that a broker takes these events for durable, which lie between these positions."""
        position, rest = begin, list(events)
        while position < end:
            if position == self.end:
                found = [each for each in self._attempts.get(position, ()) if rest[: len(each.events)] == each.events]
                if not found:
                    self._complain(f"logs differ: {who} has at {position} what nobody has appended")
                    return
                self._go_on(who, found[0])
            group = self._groups.get(position)
            if group is None or rest[: len(group.events)] != group.events:
                self._complain(f"logs differ: {who} has other events at {position} than were durable there")
                return
            position, rest = group.end, rest[len(group.events) :]
        if position != end or rest:
            self._complain(f"logs differ: {who} ends at {end}, within a group")

    def compare(self, who: str, end: int, state: State, visible: Mapping[PartitionId, Visible] | None) -> None:
        """Compare the state of a broker at a position, and what its readers see there, with those of the one log."""
        group = self._at.get(end)
        if group is None:
            self._complain(f"logs differ: {who} is at {end}, where no group ends")
            return
        if end > self.durable_truly():
            self._complain(f"not durable: {who} shows up to {end}, and a failover leaves {self.durable_truly()}")
        if _state_digest(state) != group.state:
            self._complain(f"states differ: {who} has another state at {end} than its events make")
        if visible is not None:
            self.compare_seen(who, end, visible)
        if group.count <= CHECKED_UP_TO and group.count >= self._checked.get(who, 0) + CHECKED_EVERY:
            self.check(who, end, state)

    def compare_seen(self, who: str, end: int, visible: Mapping[PartitionId, Visible]) -> None:
        """Compare what the readers of a broker see at a position."""
        if _seen_digest(visible) != self._at[end].seen:
            self._complain(f"visible: readers of {who} see something else at {end} than the log has there")

    def check(self, who: str, end: int, state: State) -> None:
        """Hold a broker's state against all invariants, as it would be if it took the lead."""
        count = self._checked[who] = self._at[end].count
        would_lead = restore(snapshot(state), state.limits)
        after_recovery(would_lead, may_have_forgotten=False)
        for violation in (*violations(would_lead, self.events[:count]), *tables_are_counted(state)):
            self._complain(f"{who}: {violation}")

    # --- the log ------------------------------------------------------------------------------------------------------

    def _ways(self, end: int, begin: int | None = None) -> Iterator[list[_Attempt]]:
        """Yield the runs of attempts from what is known to be durable up to a position."""
        begin = self.end if begin is None else begin
        if begin == end:
            yield []
        for attempt in self._attempts.get(begin, ()):
            if attempt.end <= end:
                yield from ([attempt, *rest] for rest in self._ways(end, attempt.end))

    def _go_on(self, who: str, attempt: _Attempt) -> None:
        for encoded in attempt.events:
            event = decode_event(encoded)
            self._look_at_time(event)
            apply(self.state, event)
            self.events.append(event)
        self.state.volatile.streams_let_go.clear()
        seen = {key: each for key, each in visible_changes(self.state, self.state.partitions) if each is not None}
        group = _Group(attempt.end, attempt.events, len(self.events), _state_digest(self.state), _seen_digest(seen))
        if attempt.state != group.state:
            self._complain(f"states differ: {attempt.who} had another state at {attempt.end} than its events make")
        self._groups[self.end] = self._at[attempt.end] = group
        self._attempts.pop(self.end)
        self.end = attempt.end

    def _look_at_time(self, event: Event) -> None:
        """Complain where a time goes back: in one leader's time, or behind what the state has noted before that.

        A leader goes by the time that the state has noted of producers and transactions (decision 0018), no more.
        """
        at_ms = getattr(event, "at_ms", -1)
        if isinstance(event, LeadTaken):
            self._latest_ms = latest_noted_ms(self.state)
        if 0 <= at_ms < self._latest_ms:
            self._complain(f"time goes back: {type(event).__name__} is of {at_ms}, after {self._latest_ms} was noted")
        self._latest_ms = max(self._latest_ms, at_ms)


def _state_digest(state: State) -> bytes:
    return blake2b(snapshot(state), digest_size=16).digest()


def _seen_digest(visible: Mapping[PartitionId, Visible]) -> bytes:
    return blake2b(repr(sorted(visible.items())).encode(), digest_size=16).digest()
