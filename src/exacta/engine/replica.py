"""The replica: a log that another broker leads, as far as this one has followed it.

Owns the state that the leader's events are folded into, what readers see of it, and the fetches that wait here. Owns
neither any rule (the core), nor when events come and that they are durable (the follower). It decides nothing: it has
no timers, no upkeep and no deliveries, and who submits a command to it has a defect.

Theory of operation. The follower delivers the events of whole groups, each known to be durable. They are applied in one
step, and readers see them in the same step. So what a reader sees is the state of some group's end, as at the leader,
and never less than before. It may lag, and nothing that it says proves what the end of the log is now. Fronts know
which requests may be answered so (`ports.cluster`).

When this broker takes the lead, `hand_over` gives the state to an engine. Nothing is replayed then. What a start does
with a recovered state is done in the same way (`recovery.go_on`): deadlines and sessions run again from the state,
members of groups stay members, and the time goes on from what was noted.
"""

from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import Final, NoReturn, TypeVar

import msgspec

from exacta.core.apply import apply
from exacta.core.commands import Command
from exacta.core.event_codec import decode_event
from exacta.core.events import AclsCreated, AclsDeleted, Event, ScramKeysSet
from exacta.core.ids import ConsumerId, PartitionId, SubscriptionKey, Ticket
from exacta.core.state.state import State
from exacta.core.values.limits import Limits
from exacta.engine.deadlines import Deadlines
from exacta.engine.engine import EngineFailed
from exacta.engine.fetch import Fetcher
from exacta.engine.log_reader import LogReader
from exacta.engine.lookups import JournalLookups
from exacta.engine.present_state import PresentState
from exacta.engine.reading import BatchReader
from exacta.engine.recovery import Recovered, Replayed, go_on, replay
from exacta.engine.visible import TOUCHES, show, visible_changes, visible_of
from exacta.ports.following import Delivered, Follower
from exacta.ports.journal import Failed, Journal
from exacta.ports.log import (
    AS_STORED,
    Counts,
    DiskLevel,
    FetchRequest,
    FetchResult,
    Form,
    OnAnswers,
    Sent,
    Sink,
    Visible,
)
from exacta.ports.record_format import Buffer, RecordFormat
from exacta.ports.scheduler import Scheduler

T = TypeVar("T")

AGAIN_SECONDS: Final = 0.1
"""A follower that could not catch up tries again after so long: a client would wait for its own time-out."""
_OF_ACCESS: Final = frozenset({AclsCreated, AclsDeleted, ScramKeysSet})


class DecidesNothing(RuntimeError):
    """A defect: a follower was asked to decide."""

    def __init__(self) -> None:
        super().__init__("this broker follows the log, and decides nothing")


class _NoPushing:
    """Implement `Pushing` where nothing is pushed."""

    has_stopped: Final = True
    unread: Container[SubscriptionKey] = frozenset()

    def register(self, consumer_id: ConsumerId, push: Callable[[list[Sent]], None], form: Form = AS_STORED) -> None:
        """Refuse: only the leader has consumers."""
        raise DecidesNothing

    def remove(self, consumer_id: ConsumerId) -> None:
        """Do nothing: there is none."""


class Replica:
    """The log as a follower has it. Implements `exacta.ports.log.Log`.

    Every method must be called on the event-loop thread, and none blocks.
    """

    owner_of: Callable[[str], str]
    access_changed: Callable[[Event], None] = staticmethod(lambda event: None)
    disk_level: Final = DiskLevel.HAS_ROOM

    def __init__(
        self,
        follower: Follower,
        records: RecordFormat,
        *,
        scheduler: Scheduler,
        clock: Callable[[], int],
        wait_clock: Callable[[], int] | None = None,
        limits: Limits,
        on_failure: Callable[[EngineFailed], None],
        replayed: Replayed | None = None,
    ) -> None:
        """Read the log up to where the follower begins, unless that is done, and follow it from there on. Blocks.

        The clocks are an engine's, for an engine may go on with them. `on_failure` hears, once, that the log can no
        longer be followed. Raises JournalError where the log cannot be read, msgspec.DecodeError where its events are
        not ours.
        """
        self.failed: EngineFailed | None = None
        self.scheduler = scheduler
        self.owner_of = str
        self._clock = clock
        self._on_failure = on_failure
        replayed = replayed or replay(follower.begin, limits)
        self._state, self._events = replayed.state, replayed.events
        self._has_stopped = False
        self._visible: dict[PartitionId, Visible] = {}
        self.counts = Counts()
        self._follower = follower
        self.position = follower.position
        """The end of what was applied."""
        log = LogReader(follower, self._state.partitions)
        reader = BatchReader(log, records, scheduler)
        self._waits = Deadlines(scheduler, wait_clock or clock)
        self._fetcher = Fetcher(
            self._state, log, reader, self._visible, self._waits, self.counts, scheduler, self.confirm
        )
        self.advice = PresentState(self._state)
        self.lookups = JournalLookups(self._state, log, reader, records, self.visible)
        self.dispatcher = _NoPushing()
        show(self._visible, visible_changes(self._state, self._state.partitions))
        follower.on_failure(lambda failed: self._fail(failed.reason, another_may_lead=True))
        follower.follow(self.take)

    # --- following ----------------------------------------------------------------------------------------------------

    def take(self, delivered: Delivered) -> None:
        """Apply events that are durable, and show what they have changed, in one step."""
        if self._has_stopped:
            return
        touched: dict[PartitionId, None] = {}
        try:
            for encoded in delivered.events:
                event = decode_event(encoded)
                if type(event) in TOUCHES:
                    touched.update(dict.fromkeys(TOUCHES[type(event)](self._state, event)))
                if type(event) in _OF_ACCESS:
                    self.access_changed(event)
                apply(self._state, event)
        except msgspec.DecodeError as error:
            self._fail(f"the leader has written what this version cannot read: {error}", another_may_lead=False)
            return
        except Exception as defect:
            self._fail(f"{defect!r}", another_may_lead=False)
            raise
        self._events += len(delivered.events)
        self._state.volatile.streams_let_go.clear()  # what they free is the leader's matter
        self.position = delivered.position
        show(self._visible, visible_changes(self._state, touched))
        self._fetcher.advance(list(touched))

    def hand_over(self, journal: Journal) -> Recovered:
        """Answer nobody any more, and return what the engine over the journal begins with, which this broker leads.

        The journal is the one that the follower has handed out.
        """
        self.failed = EngineFailed("this broker leads the log now, and follows it no more", another_may_lead=True)
        self.abandon()
        replayed = Replayed(state=self._state, events=self._events)
        return go_on(replayed, self._clock, may_have_lost=journal.may_have_lost)

    def close(self, done: Callable[[], None]) -> None:
        """Stop cleanly: answer waiting fetches; then call `done`. The follower is still open then."""
        self._fetcher.finish()
        self.abandon()
        done()

    def abandon(self) -> None:
        """Apply nothing any more, and answer nobody."""
        self._has_stopped = True
        self._fetcher.abandon()
        self._waits.close()

    def _fail(self, reason: str, *, another_may_lead: bool) -> None:
        if self.failed is not None or self._has_stopped:
            return
        self.failed = EngineFailed(reason, another_may_lead=another_may_lead)
        self.abandon()
        self._on_failure(self.failed)

    # --- what the fronts ask ------------------------------------------------------------------------------------------

    def confirm(self, answer: Callable[[], None], is_shown: bool = False) -> int:
        """See `Log.confirm`: what a follower says is durable, and may be behind what was acknowledged elsewhere."""
        if self.failed is None:
            answer()
        return 0

    def catch_up(self, done: Callable[[], None]) -> None:
        """See `Log.catch_up`: it is tried until it succeeds, or this broker follows no more."""

        def caught_up(failed: Failed | None) -> None:
            if failed is not None:
                self.scheduler.call_later(AGAIN_SECONDS, self.catch_up, done)
            elif not self._has_stopped:
                done()

        if not self._has_stopped:
            self._follower.catch_up(caught_up)

    def read(self, view: Callable[[State, int], T], done: Callable[[T], None]) -> int:
        """See `Log.read`, and `confirm`."""
        if self.failed is None:
            done(view(self._state, self._clock()))
        return 0

    def view(self, view: Callable[[State, int], T]) -> T:
        """See `Log.view`."""
        return view(self._state, self._clock())

    def fetch(self, request: FetchRequest, done: Callable[[list[FetchResult]], None], after: int = 0) -> None:
        """See `Log.fetch`: what readers of uncommitted records get is as far as this broker has followed."""
        if self.failed is None:
            self._fetcher.fetch(request, done)

    def hurry_fetch(self, request: FetchRequest) -> None:
        """See `Log.hurry_fetch`."""
        self._fetcher.hurry(request)

    def forget_fetch(self, request: FetchRequest) -> None:
        """See `Log.forget_fetch`."""
        self._fetcher.forget(request)

    def when_shown(
        self, partitions: Iterable[tuple[str, int]] | None, done: Callable[[], None], after: int = 0
    ) -> None:
        """See `Log.when_shown`, and `confirm`."""
        self.confirm(done, True)

    def visible(self, topic: str, partition: int) -> Visible | None:
        """See `Log.visible`."""
        entry = self._state.partition(topic, partition)
        return None if entry is None else self._visible.get(entry.partition_id)

    def visible_of(self, partition_ids: Iterable[PartitionId | None]) -> list[Visible | None]:
        """See `Log.visible_of`."""
        return visible_of(self._visible, partition_ids)

    def now_ms(self) -> int:
        """See `Log.now_ms`."""
        return self._clock()

    def clock_was_moved(self) -> None:
        """See `Log.clock_was_moved`."""
        self._waits.clock_was_moved()

    def remove_sink(self, key: Hashable) -> None:
        """See `Log.remove_sink`."""

    # --- what only the leader does ------------------------------------------------------------------------------------

    def submit(
        self,
        commands: Sequence[Command],
        done: OnAnswers,
        payloads: Sequence[Buffer | None] | None = None,
        host: str = "",
    ) -> NoReturn:
        """Refuse: see `DecidesNothing`."""
        raise DecidesNothing

    def would_refuse(self, command: Command, host: str = "") -> NoReturn:
        """Refuse: see `DecidesNothing`."""
        raise DecidesNothing

    def new_ticket(self) -> Ticket:
        """Refuse: see `DecidesNothing`."""
        raise DecidesNothing

    def new_consumer_id(self) -> ConsumerId:
        """Refuse: see `DecidesNothing`."""
        raise DecidesNothing

    def register_sink(self, key: Hashable, sink: Sink) -> None:
        """Refuse: see `DecidesNothing`."""
        raise DecidesNothing
