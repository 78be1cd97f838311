"""Answers ahead of the sync: which answers wait for the disk, and for how much of it.

Owns the table of all answers (`WAITS_FOR`), the groups that must be durable before an answer may come early, and the
sync of what was only written. Owns neither what a command promises (`exacta.core.promises`) nor what recovery does
about a loss (`exacta.core.transactions.loss`).

Theory of operation. An answer waits for nothing, until its events are written, or until they are synced. A process
that dies loses nothing that was written; a machine that stops may lose what was not synced. So an early answer must be
one that recovery can stand by although its events are missing. These kinds of answers are such.

- A registration promises only that the next request is accepted. The core makes up for a lost one (decision 0002).
- A write into an open transaction promises only that the transaction's end will tell, and the end waits for the sync
  of everything before it (decision 0016). If the machine stops, recovery aborts the transactions that it finds open and
  fences the producers that it has heard of last. So recovery must find the transaction, or hear of its producer: the
  write rests on the begin of its transaction.
- An acknowledgement without an answer promises nothing. It is written, so that a process that dies does not lose it.
- The begin of a handle promises only that its ids are nobody else's (decision 0027). Recovery aborts every handle that
  it finds open, and nobody ends one that it does not find. So the begin rests on the reservation of the ids. When a
  transactional id joins the handle, what is written into it rests on that: without it recovery would not know whom to
  fence (decision 0038).

The earlier event that an answer rests on is its *foundation*, and the group that holds that event must be durable
before the answer comes early (`Foundation`).

A further kind of early answer needs a value of `Promise`, a column in the table, and its foundation: `_note` notes the
group that holds the earlier event, and `foundation` finds it.

Over a journal that others may append to (`Journal.is_exclusive`) no answer comes early. Each change of leader would be
a stop of the machine there, and a leader that was replaced would go on answering. So the row `SHARED` holds for all
answers, and an answer without events waits there until the journal is confirmed (`journal_writer`, decision 0072).

What was written and not synced is synced with the next group that an answer waits for, or after the limit
`flush_interval_ms`. The sync of a begin that must be durable starts at once, while its client makes the first write.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum

from exacta.core.commands import Command
from exacta.core.events import Event, IdsReserved, TransactionBegun, TransactionEnded, TransactionJoined
from exacta.core.ids import PartitionId, TransactionId
from exacta.core.outcome import Outcome
from exacta.core.promises import Promise
from exacta.core.state.state import State
from exacta.core.transactions.loss import may_begin_unseen
from exacta.engine.commit_group import CommitGroup, Wait
from exacta.ports.scheduler import Scheduler, TimerHandle

_REGISTRATION = Promise.REGISTRATION
_NEW_ID = Promise.NEW_ID
_SOON = Promise.SOON
_INSIDE = Promise.INSIDE
_OF_EVENTS = frozenset({_REGISTRATION, _NEW_ID})
"""These promise only as much as the events that they come with."""
_NOTED = frozenset({TransactionBegun, TransactionJoined, TransactionEnded, IdsReserved})
_RECOVERED = 0
"""The number of a group that was durable before this engine began."""
_NO_GROUP = -1
"""No group must be durable: the foundation is not needed."""


class Foundation(IntEnum):
    """The knowledge of the earlier event that an answer rests on."""

    NONE = 0
    """No earlier event: a write outside of any transaction, or in one of a two-phase commit (KIP-939)."""
    DURABLE = 1
    """An event that is durable before what gathers now is written."""
    UNSYNCED = 2
    """An event that a stop of the machine may lose."""
    NOT_NEEDED = 3
    """A begin that recovery need not find: it fences the producer anyway (decision 0022), or it is a handle's."""
    SHARED = 4
    """No matter what: another broker may have taken the lead, and lacks what is not durable (decision 0072)."""


_ALWAYS_THE_SAME = {
    Promise.STATE: Wait.SYNC,
    Promise.REGISTRATION: Wait.WRITE,
    Promise.END: Wait.SYNC,
    Promise.NOTHING: Wait.NOTHING,
    Promise.SOON: Wait.WRITE,
    Promise.INSIDE: Wait.NOTHING,
}

WAITS_FOR: Mapping[Foundation, Mapping[Promise, Wait]] = {
    Foundation.NONE: {**_ALWAYS_THE_SAME, Promise.WRITE: Wait.SYNC, Promise.NEW_ID: Wait.SYNC},
    Foundation.DURABLE: {**_ALWAYS_THE_SAME, Promise.WRITE: Wait.WRITE, Promise.NEW_ID: Wait.WRITE},
    Foundation.UNSYNCED: {**_ALWAYS_THE_SAME, Promise.WRITE: Wait.SYNC, Promise.NEW_ID: Wait.SYNC},
    Foundation.NOT_NEEDED: {**_ALWAYS_THE_SAME, Promise.WRITE: Wait.WRITE, Promise.NEW_ID: Wait.WRITE},
    Foundation.SHARED: dict.fromkeys(Promise, Wait.SYNC) | {Promise.INSIDE: Wait.NOTHING},
}


_NONE, _DURABLE, _UNSYNCED, _NOT_NEEDED, _SHARED = Foundation


class AnswersAhead:
    """Says for what an answer waits, and remembers what is written and not synced."""

    def __init__(
        self,
        state: State,
        scheduler: Scheduler,
        clock: Callable[[], int],
        make_durable: Callable[[], None],
        *,
        is_exclusive: bool,
    ) -> None:
        """Begin with a state that is durable.

        `make_durable` makes durable, as soon as can be, all that has gathered or is written. `is_exclusive` is the
        journal's.
        """
        self._state = state
        self._is_exclusive = is_exclusive
        self._scheduler = scheduler
        self._clock = clock
        self._flush_interval_ms = state.limits.flush_interval_ms
        self._make_durable = make_durable
        self._begin_groups: dict[TransactionId, int] = dict.fromkeys(state.transactions, _RECOVERED)
        """The number of the group that holds the begin of each open transaction, or `_NO_GROUP`."""
        self._reservation_group = _RECOVERED
        """The number of the group that holds the last reservation of ids."""
        self._last_synced = _RECOVERED
        """The last group that is durable before what gathers now is written: it is durable, or in flight."""
        self.unsynced: set[PartitionId] | None = None
        """The partitions touched by groups that are written, and neither durable nor in flight; None: no such group."""
        self._unsynced_since_ms = 0
        self._sync_timer: TimerHandle | None = None

    # --- what an answer waits for -------------------------------------------------------------------------------------

    def wait_for(self, command: Command, outcome: Outcome, gathering: CommitGroup) -> Wait:
        """Return for what the answer to this command waits. To be called once, before its events are applied."""
        for event in outcome.events:
            if type(event) in _NOTED:
                self._note(event, gathering)
        promise = command.promises
        if promise in _OF_EVENTS and not outcome.events:
            promise = Promise.STATE  # a refusal; or a repeat, whose first try may still be on its way
        elif promise is _SOON and not any(event.durable for event in outcome.events):
            promise = _INSIDE  # it was done already, or is of a non-durable subscription
        if not self._is_exclusive:
            foundation = _SHARED
        elif outcome.inside_transaction is not None:
            foundation = self.foundation(outcome.inside_transaction)
        else:
            foundation = self.reservation() if promise is _NEW_ID else _NONE
        return WAITS_FOR[foundation][promise]

    def foundation(self, transaction_id: TransactionId) -> Foundation:
        """Return what is known of the begin of this open transaction, whose writes rest on it."""
        number = self._begin_groups[transaction_id]
        if number == _NO_GROUP:
            return _NOT_NEEDED
        return _DURABLE if number <= self._last_synced else _UNSYNCED

    def reservation(self) -> Foundation:
        """Return what is known of the reservation that covers the ids which are given out now."""
        return _DURABLE if self._reservation_group <= self._last_synced else _UNSYNCED

    def _note(self, event: Event, gathering: CommitGroup) -> None:
        """Note in which group a transaction begins or ids are reserved, and that a transaction has ended."""
        if isinstance(event, TransactionBegun):
            is_needed = event.owner is not None and not may_begin_unseen(
                self._state.transactional_ids[event.owner], event.at_ms
            )
            self._begin_groups[event.transaction_id] = gathering.number if is_needed else _NO_GROUP
            gathering.holds_begin |= is_needed
        elif isinstance(event, TransactionJoined):
            self._begin_groups[event.transaction_id] = gathering.number
            gathering.holds_begin = True
        elif isinstance(event, TransactionEnded):
            self._begin_groups.pop(event.transaction_id, None)
        elif isinstance(event, IdsReserved):
            self._reservation_group = gathering.number

    # --- what is written, and not synced ------------------------------------------------------------------------------

    def written(self, group: CommitGroup) -> None:
        """Note that a group is written ahead of its sync."""
        if self.unsynced is None:
            self.unsynced = set()
            self._unsynced_since_ms = self._clock()
        self.unsynced |= group.touched
        if self._sync_timer is None:
            self._sync_timer = self._scheduler.call_later(self._flush_interval_ms / 1000, self._sync_in_time)

    def sync_begins(self, written: CommitGroup) -> None:
        """Make a begin in this group durable while its client makes its first write, which waits for that."""
        if written.holds_begin:
            self._make_durable()

    def syncs(self, group: CommitGroup) -> None:
        """Note that a group is made durable now, and with it everything that was only written before it."""
        self._last_synced = group.number
        if self.unsynced is not None:
            group.synced_too = self.unsynced
            group.touched |= self.unsynced
            self.unsynced = None

    def stop(self) -> None:
        """Ask for no sync any more: the engine stops."""
        if self._sync_timer is not None:
            self._sync_timer.cancel()

    def _sync_in_time(self) -> None:
        """Make durable what has waited for long enough; one timer also serves what has been written since."""
        self._sync_timer = None
        if self.unsynced is None:
            return
        left_ms = self._unsynced_since_ms + self._flush_interval_ms - self._clock()
        if left_ms <= 1:  # the loop's timers and this time are rounded apart
            self._make_durable()
        else:
            self._sync_timer = self._scheduler.call_later(left_ms / 1000, self._sync_in_time)
