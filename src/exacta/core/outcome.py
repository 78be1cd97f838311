"""The outcome of a command, which `decide` returns: events to make durable, the answer, notices, and timers."""

from collections.abc import Hashable

from msgspec import Struct

from exacta.core.commands import Command
from exacta.core.events import Event
from exacta.core.ids import Ticket, TransactionId
from exacta.core.rejections import Rejection
from exacta.core.replies import Reply


class Timer(Struct, frozen=True):
    """A command to be sent when `at_ms` has come."""

    at_ms: int
    command: Command


class Notice(Struct, frozen=True, kw_only=True):
    """Base of the words that a connection is told without having asked for them."""


class Outcome(Struct, frozen=True, kw_only=True):
    """Events in order, the answer, and notices to connections that did not ask."""

    events: tuple[Event, ...] = ()
    reply: Reply | Rejection | None = None
    """The answer. None: it waits under the command's ticket, and comes in the `wakes` of a later outcome."""
    wakes: tuple[tuple[Ticket, Reply | Rejection], ...] = ()
    timers: tuple[Timer, ...] = ()
    inside_transaction: TransactionId | None = None
    """The open transaction that was written into; None: the answer promises what it says.

    The answer to such a write promises nothing before the transaction ends, since recovery aborts the transaction if a
    crash forgets the write (`exacta.core.transactions.loss`).
    """
    notices: tuple[tuple[Hashable, Notice], ...] = ()
    """Each notice with the key of the connection that gets it, in order, once the state after the events is durable.

    A notice is lost where no connection is there under the key. Lost notices must be made up for.
    """
