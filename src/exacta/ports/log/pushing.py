"""The consumers of subscriptions, to whom entries are pushed, and in what form the consumers of a front read."""

from collections.abc import Callable, Container
from typing import NamedTuple, Protocol

from exacta.core.ids import ConsumerId, SubscriptionKey
from exacta.core.replies import Delivering
from exacta.ports.record_format import Buffer, Convert, Converted


class Sent(NamedTuple):
    """An entry for a consumer, and its batch as the consumer reads it."""

    entry: Delivering
    batch: Buffer


class Form(NamedTuple):
    """The form in which the consumers of a front read entries, and what decides which of them gets one."""

    convert: Convert = lambda entries, wanted, done: done(Converted(entries))
    """Makes of entries what the front's clients read."""
    facts_of: Callable[[Buffer], tuple[int, int]] = lambda batch: (-1, 0)
    """Returns the hash of a batch's key (-1: it has none), and the time before which Shared and Key_Shared
    subscriptions do not deliver it, in milliseconds since 1970 (0: it has none)."""


AS_STORED = Form()
"""Entries as they lie in the log, without keys and delays."""


class Pushing(Protocol):
    """Pushes entries to consumers. Every method must be called on the event-loop thread."""

    @property
    def has_stopped(self) -> bool:
        """Return whether nothing is pushed any more, so that consumers need not be said good-bye to."""

    @property
    def unread(self) -> Container[SubscriptionKey]:
        """The subscriptions whose next messages could not be read: that is tried again after a while."""

    def register(self, consumer_id: ConsumerId, push: Callable[[list[Sent]], None], form: Form = AS_STORED) -> None:
        """Push what a consumer is to have from now on, in this form; to be called before the consumer connects."""

    def remove(self, consumer_id: ConsumerId) -> None:
        """Push nothing to a consumer any more, not even what is being read for it."""
