"""What `decide` returns: the events to make durable, the answer, and what to do later."""

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


class Outcome(Struct, frozen=True, kw_only=True):
    """Events in order, and the answer.

    `reply` None: the answer waits under the command's ticket, and comes in the `wakes` of a later outcome.

    `within`: the open transaction that this was written into. The answer promises nothing before that
    ends, since the transaction is aborted if a crash forgets the write (`loss.py`). None: it promises what it says.
    """

    events: tuple[Event, ...] = ()
    reply: Reply | Rejection | None = None
    wakes: tuple[tuple[Ticket, Reply | Rejection], ...] = ()
    timers: tuple[Timer, ...] = ()
    within: TransactionId | None = None
