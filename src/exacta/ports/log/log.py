"""The log as fronts see it."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import IntEnum
from typing import Protocol, TypeAlias, TypeVar

from exacta.core.commands import Command
from exacta.core.events import Event
from exacta.core.ids import ConsumerId, PartitionId, Ticket
from exacta.core.outcome import Notice
from exacta.core.state.state import State
from exacta.ports.log.advice import Advice
from exacta.ports.log.answers import OnAnswers
from exacta.ports.log.counts import Counts
from exacta.ports.log.fetching import FetchRequest, FetchResult
from exacta.ports.log.lookups import Lookups
from exacta.ports.log.pushing import Pushing
from exacta.ports.log.visible import Visible
from exacta.ports.record_format import Buffer
from exacta.ports.scheduler import Scheduler

N = TypeVar("N")
T = TypeVar("T")
View: TypeAlias = Callable[[State, int], T]
"""A question of the state, at a time in ms: one of `exacta.core.queries`. It copies what it returns."""
ViewOf: TypeAlias = Callable[[State, int, N], T]
"""The same about one of many things, by its name."""
Sink = Callable[[Notice], None]
"""Takes the notices to one key."""


class DiskLevel(IntEnum):
    """The state of the disk, as the operator is told of it."""

    HAS_ROOM = 0
    FULL = 1
    """Records are refused."""
    USED_UP = 2
    """The reserve is used up, too: commits and acknowledgements are refused as well."""


class Log(Protocol):
    """The one log of a broker. Every method must be called on the event-loop thread, and none blocks for long."""

    owner_of: Callable[[str], str]
    """Returns who the entries of a host belong to; empty: nobody. A server sets it."""
    access_changed: Callable[[Event], None]
    """Hears each event that changes access rules or users, whatever has led to it, just before it is applied."""

    @property
    def failed(self) -> Exception | None:
        """The reason why the state in memory is worthless, so that nobody is answered any more; None: there is none."""

    @property
    def scheduler(self) -> Scheduler:
        """The event loop on which all of this runs."""

    # --- commands -----------------------------------------------------------------------------------------------------

    def submit(
        self,
        commands: Sequence[Command],
        done: OnAnswers,
        payloads: Sequence[Buffer | None] | None = None,
        host: str = "",
    ) -> int:
        """Decide the commands in order, in one step; `done` gets one answer for each once all may be known.

        Returns the number of the commit group that the answers rest on, for `when_shown` and `fetch`; 0: none.

        `payloads` holds, for each AppendBatch, the batch as received and validated, unchanged until `done`.
        A Parked command comes alone, with a ticket from `new_ticket`. `done` may be called before this returns.
        `host` is the client's, whose share of the state's tables it counts towards; empty: nobody's.
        """

    def would_refuse(self, command: Command, host: str = "") -> bool:
        """Return whether a command would be refused if it was submitted in this step."""

    def new_ticket(self) -> Ticket:
        """Return a ticket for one Parked command."""

    def new_consumer_id(self) -> ConsumerId:
        """Return an id that no consumer of any front has had since the start."""

    # --- answers that bring no event of their own ---------------------------------------------------------------------

    def confirm(self, answer: Callable[[], None], is_shown: bool = False) -> int:
        """Hand out an answer that brings no event of its own. All such answers pass here, and nowhere else.

        The promise is this. What the answer was taken from is durable when `answer` is called, so no crash undoes it.
        It also holds all that anybody was acknowledged before the question came. The second half holds by itself while
        one broker writes the log. Several brokers confirm it here: `answer` waits until this broker is known to have
        led the log after the question came, and is not called if it has not.

        With `is_shown` an answer rests only on what readers see (`visible`, `lookups`), which is durable: one broker
        calls back at once. Otherwise it rests on the present state, and waits until that is durable. `read`,
        `when_shown` and what `fetch` refuses pass here by themselves. Returns what `submit` returns.
        """

    def catch_up(self, done: Callable[[], None]) -> None:
        """Call back once this broker knows all that was decided before this call; nobody is called if that fails.

        Where one broker writes the log it calls back at once, and a leader confirms that it leads. At a follower, what
        is looked up then is not behind any earlier answer of another broker.
        """

    def read(self, view: View[T], done: Callable[[T], None]) -> int:
        """Take a view of the state (and the time, in ms) now, and `confirm` it.

        The view must copy what it returns: the state goes on changing. Returns what `submit` returns.
        """

    def view(self, view: View[T]) -> T:
        """Return a view of the state in this step, at a time in ms; `read` or `confirm` hands an answer from it out."""

    def fetch(self, request: FetchRequest, done: Callable[[list[FetchResult]], None], after: int = 0) -> None:
        """Read records. Where one broker writes, readers of uncommitted records get every acknowledged one.

        An answer that refuses a partition is passed to `confirm`. Another one shows a durable prefix of the log, which
        any leader has. The fetch waits until the commit group of the number `after` can be seen.
        """

    def hurry_fetch(self, request: FetchRequest) -> None:
        """Answer this request with what there is, if it waits, or is going to."""

    def forget_fetch(self, request: FetchRequest) -> None:
        """Do not answer this request any more, if it waits."""

    def when_shown(
        self, partitions: Iterable[tuple[str, int]] | None, done: Callable[[], None], after: int = 0
    ) -> None:
        """Call back once readers may see every acknowledged record of these partitions, or of all: mostly at once.

        A write into an open transaction is acknowledged before readers may see it. `after` is the number of a commit
        group that readers must see as well, whatever it holds (decision 0028). What is answered by `visible` and
        `lookups` in that step is confirmed.
        """

    def visible(self, topic: str, partition: int) -> Visible | None:
        """Return the offsets that readers may see of a partition now; None if there is none, or not durably yet."""

    def visible_of(self, partition_ids: Iterable[PartitionId | None]) -> list[Visible | None]:
        """Return the same of many partitions by their ids, all in this step; None for None."""

    @property
    def lookups(self) -> Lookups:
        """The look-ups in what is durable."""

    # --- what is no answer --------------------------------------------------------------------------------------------

    @property
    def advice(self) -> Advice:
        """The present state, for who is about to submit a command."""

    @property
    def counts(self) -> Counts:
        """The numbers of what was done since the start."""

    @property
    def disk_level(self) -> DiskLevel:
        """The state of the disk: there is room, it is full, or its reserve is used up, too."""

    def now_ms(self) -> int:
        """Return the time by which commands are decided."""

    def clock_was_moved(self) -> None:
        """Look at the time again: a test has moved it."""

    # --- sinks --------------------------------------------------------------------------------------------------------

    @property
    def dispatcher(self) -> Pushing:
        """The pushing of entries to the consumers of subscriptions."""

    def register_sink(self, key: Hashable, sink: Sink) -> None:
        """Hand the notices to this key to the sink, each once the state that it tells of is durable.

        A notice is dropped unless the sink was there when it was decided, and still is. Raises ValueError where the key
        is taken.
        """

    def remove_sink(self, key: Hashable) -> None:
        """Drop the notices to this key from now on, also those that wait already."""
