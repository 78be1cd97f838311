"""The commands to subscriptions; `core/commands.py` gathers them with all others."""

from typing import ClassVar

from msgspec import field

from exacta.core.command import Command
from exacta.core.ids import Offset, TransactionId
from exacta.core.promises import Promise
from exacta.core.state.runs import Run
from exacta.core.state.subscription import SubscriptionType

EARLIEST, LATEST = Offset(-2), Offset(-1)
"""These stand for the start of the log and for its end, as offsets that no message has."""


class Subscribe(Command, frozen=True, kw_only=True):
    """Find a subscription, or create it where there is none; `subscription_type` is how it is used from now on.

    A new one begins at an offset, or at `EARLIEST` or `LATEST`. `properties` are those of a new one.
    """

    topic: str
    partition: int
    subscription: str
    subscription_type: SubscriptionType
    begin: Offset = LATEST
    properties: dict[str, str] = field(default_factory=dict)


class Unsubscribe(Command, frozen=True, kw_only=True):
    """Delete a subscription."""

    topic: str
    partition: int
    subscription: str


class Seek(Command, frozen=True, kw_only=True):
    """Let a subscription go on at an offset, or at `EARLIEST` or `LATEST`."""

    topic: str
    partition: int
    subscription: str
    to: Offset


class Acknowledge(Command, frozen=True, kw_only=True):
    """Acknowledge these messages, or all messages before an offset; in a transaction where one is named.

    A message is named by its offset. An entry of several messages is a run.
    """

    promises: ClassVar[Promise] = Promise.WRITE

    topic: str
    partition: int
    subscription: str
    runs: tuple[Run, ...] = ()
    before: Offset | None = None
    transaction: TransactionId | None = None


class AcknowledgeSoon(Acknowledge, frozen=True, kw_only=True):
    """Acknowledge messages for a client that asks for no answer: a stop of the machine may forget it."""

    promises: ClassVar[Promise] = Promise.SOON
