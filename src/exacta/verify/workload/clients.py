"""librdkafka's producers and consumers, as this checker sets them up."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from exacta.verify.history import Init, Isolation, Outcome
from exacta.verify.workload.notes import Notes

CALL_S = 60.0
"""The time for which a call may wait for a cluster that is away."""
TRANSACTION_TIMEOUT_MS = 60_000
SESSION_TIMEOUT_MS = 6_000  # the least that Kafka allows by default
POLL_WITHIN_MS = SESSION_TIMEOUT_MS
"""A member that does not poll for this long has left its group. librdkafka allows no less than the session's
timeout."""
_COMMON: dict[str, Any] = {
    # Without one, a fatal error is raised in the midst of whatever callback comes next, as a SystemError.
    "error_cb": lambda error: None,
    "log_level": 0,
    "reconnect.backoff.max.ms": 1_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
    # Its default forgets all brokers when none is connected, but not the coordinators that it has cached, and then
    # send_offsets_to_transaction waits for ever (librdkafka issue 5511).
    "metadata.recovery.strategy": "none",
}


def describe(error: KafkaException) -> str:
    """Return what went wrong, in a few words."""
    found = error.args[0]
    return str(found.str() if found.code() == KafkaError._FAIL else found.name())


class Producers:
    """The producers of one transactional id, one after the other; each is a successor of the one before."""

    def __init__(
        self, settings: Mapping[str, str], process: str, name: str, transactional_id: str, notes: Notes
    ) -> None:
        self._settings = {
            **settings,
            **_COMMON,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 0,
        }
        self._process = process
        self._name = name
        self._transactional_id = transactional_id
        self._notes = notes
        self._count = 0

    def next(self) -> tuple[Producer, str]:
        """Return a producer that has the transactional id, and its name; raises KafkaException."""
        self._count += 1
        name = f"{self._name}#{self._count}"
        start_us = self._notes.now_us()
        outcome, error = Outcome.UNKNOWN, ""
        try:
            producer = Producer(self._settings)
            producer.init_transactions(CALL_S)
            outcome = Outcome.OK
        except KafkaException as raised:
            error = describe(raised)
            raise
        finally:
            init = Init(
                process=self._process,
                producer=name,
                transactional_id=self._transactional_id,
                start_us=start_us,
                end_us=self._notes.now_us(),
                outcome=outcome,
                error=error,
            )
            self._notes.write(init)
        return producer, name


def consumer(settings: Mapping[str, str], isolation: Isolation, group: str, **more: Any) -> Consumer:
    """Return a consumer that commits nothing by itself."""
    return Consumer(
        {
            **settings,
            **_COMMON,
            "group.id": group,
            "isolation.level": isolation.value,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "max.poll.interval.ms": POLL_WITHIN_MS,
            "heartbeat.interval.ms": 500,
            "fetch.wait.max.ms": 100,
            "check.crcs": True,  # as Java's consumer does: who would not notice damage cannot tell of it
            **more,
        }
    )
