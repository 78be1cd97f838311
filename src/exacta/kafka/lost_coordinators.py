"""A client that registers a group with its transaction and brings no offsets may wait for ever: it is woken up.

Owns when that is. librdkafka (issue 5511, 2.16.0 with its default `metadata.recovery.strategy=rebootstrap`) forgets all
brokers when none can be reached, but goes on remembering one of them as the coordinator of the group. After the answer
to AddOffsetsToTxn it waits for that broker to come up, whatever the time-out of the call was, and looks for another one
only when a connection comes up or goes down. No answer makes it look: it asks nothing any more. So its connection is
closed, as a broker may do at any time; it connects again, looks for the coordinator, and goes on.

Offsets follow on a registration within milliseconds otherwise. A client that takes longer for another reason only
connects once more. Java's client, and one that does not say what it is (KIP-511; librdkafka does), are left alone: they
do not wait so. The bindings of librdkafka give names of their own, so it is not looked for by its name.
"""

from typing import Protocol

from exacta.ports.scheduler import Scheduler, TimerHandle

OFFSETS_WITHIN_SECONDS = 1.0
"""librdkafka looks for the coordinator at most once a second."""

_NEVER_WAITS = ("", "apache-kafka-java")


class Waiting(Protocol):
    """The connection of a client that may wait for ever."""

    client_software: str

    def close_if_idle(self) -> bool:
        """Close, or do nothing and return False where an answer is owed."""


class LostCoordinators:
    """Keep the transactional ids that have registered a group, until the offsets come; there is one per server."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiting: dict[str, TimerHandle] = {}

    def registered(self, transactional_id: str, connection: Waiting) -> None:
        """Expect offsets, or the end of the transaction, after this answer."""
        self.went_on(transactional_id)
        if connection.client_software in _NEVER_WAITS:
            return

        def overdue() -> None:
            del self._waiting[transactional_id]
            if not connection.close_if_idle():
                self.registered(transactional_id, connection)

        self._waiting[transactional_id] = self._scheduler.call_later(OFFSETS_WITHIN_SECONDS, overdue)

    def went_on(self, transactional_id: str) -> None:
        """Expect nothing any more of this transaction: its client does not wait."""
        timer = self._waiting.pop(transactional_id, None)
        if timer is not None:
            timer.cancel()
