"""Run one transaction after the other as planned: commit it, abort it, or let a second producer take it over.

This module owns the record of a transaction in the history, and the client's knowledge at its end. A commit that was
asked for and not acknowledged is unknown, whatever the error: the broker may have done it and lost the answer. An abort
that is acknowledged afterwards makes it certain: no broker aborts what it has committed.
"""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from itertools import count

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from exacta.verify.history import Begin, CommitAsked, End, Outcome
from exacta.verify.workload import plan as plans
from exacta.verify.workload.clients import CALL_S, Producers, describe
from exacta.verify.workload.notes import Notes
from exacta.verify.workload.plan import Plan, PlannedEnd
from exacta.verify.workload.reading import assigned, look
from exacta.verify.workload.spec import Role, Spec

_AGAIN_AFTER_S = 0.2
_ABORT_S = 20.0
_FENCED_S = 5.0
"""The time for what is sent late. No broker takes it, and some let its client wait."""

SendOffsets = Callable[[Producer], None]


class Transactor:
    """A transactional id and the producer that has it now."""

    def __init__(self, spec: Spec, notes: Notes) -> None:
        self._spec = spec
        self._notes = notes
        self._producers = Producers(spec.client, spec.process, spec.name, spec.transactional_id, notes)
        self._producer: Producer | None = None
        self._name = ""
        self._numbers = count(1)
        self.look: Consumer | None = None
        """A reader of committed records, to look at within transactions."""

    def next_name(self) -> str:
        """Return the name of the next transaction."""
        return f"{self._spec.name}.{next(self._numbers)}"

    def ready(self) -> bool:
        """Have a producer; False where the cluster does not give one now."""
        if self._producer is None:
            try:
                self._producer, self._name = self._producers.next()
            except KafkaException:
                return False
        return True

    def transact(
        self,
        transaction: str,
        plan: Plan,
        sources: list[tuple[str, int, int]] | None = None,
        send_offsets: SendOffsets | None = None,
    ) -> bool:
        """Run a transaction as planned; return whether it was committed."""
        producer, name = self._producer, self._name
        assert producer is not None, "ready() comes first"
        self._notes.write(
            Begin(
                process=self._spec.process,
                producer=name,
                transactional_id=self._spec.transactional_id,
                transaction=transaction,
                at_us=self._notes.now_us(),
                records=plan.records,
                sources=sources or [],
            )
        )
        offsets: list[int | None] = [None] * len(plan.records)
        asked = False
        try:
            producer.begin_transaction()
            early = len(plan.records) - (1 if plan.late else 0)
            self._send(producer, plan, range(early), offsets)
            if plan.look and self.look is not None:
                look(self.look, self._spec.process, self._spec.isolation, self._notes, transaction=transaction)
            if plan.late:
                self._producer, self._name = self._producers.next()
                self._send(producer, plan, range(early, len(plan.records)), offsets, _FENCED_S)
            if send_offsets is not None:
                send_offsets(producer)
            if plan.end is PlannedEnd.ABORT:
                producer.abort_transaction(CALL_S)
                self._end(transaction, offsets, committing=False, outcome=Outcome.OK)
                return False
            if plan.end is PlannedEnd.ZOMBIE and not plan.late:
                self._producer, self._name = self._producers.next()
            self._notes.write(
                CommitAsked(process=self._spec.process, transaction=transaction, at_us=self._notes.now_us())
            )
            asked = True
            self._commit(producer)
        except KafkaException as error:
            outcome = Outcome.UNKNOWN if asked else Outcome.FAIL
            if self._recover(producer, name, error.args[0]):
                asked, outcome = False, Outcome.OK
            self._end(transaction, offsets, committing=asked, outcome=outcome, error=describe(error))
            return False
        self._end(transaction, offsets, committing=True, outcome=Outcome.OK)
        return True

    def _send(
        self, producer: Producer, plan: Plan, which: range, offsets: list[int | None], flush_s: float = CALL_S
    ) -> None:
        def delivered(number: int) -> Callable[[KafkaError | None, Message], None]:
            def note(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    return
                offset = message.offset()  # None where the broker has told a number below zero
                if offset is not None and offset >= 0:
                    offsets[number] = offset

            return note

        for number in which:
            topic, partition, value = plan.records[number]
            with _raising_what_was_meant():
                producer.produce(topic, value.encode(), partition=partition, on_delivery=delivered(number))
                producer.poll(0)
                if plan.flush:
                    producer.flush(flush_s)

    def _commit(self, producer: Producer) -> None:
        producer.commit_transaction(CALL_S)

    def _end(
        self, transaction: str, offsets: list[int | None], *, committing: bool, outcome: Outcome, error: str = ""
    ) -> None:
        self._notes.write(
            End(
                process=self._spec.process,
                transaction=transaction,
                at_us=self._notes.now_us(),
                committing=committing,
                outcome=outcome,
                offsets=offsets,
                error=error,
            )
        )

    def _recover(self, producer: Producer, producer_name: str, error: KafkaError) -> bool:
        """Go on with this producer where it can, else with another one; return whether its abort was acknowledged."""
        if self._name != producer_name:
            return False  # it was a zombie
        if error.txn_requires_abort():
            with contextlib.suppress(KafkaException):
                producer.abort_transaction(_ABORT_S)
                return True
        self._producer = None
        return False


@contextlib.contextmanager
def _raising_what_was_meant() -> Iterator[None]:
    """Raise the KafkaException that confluent-kafka raised in the midst of a callback, which is a SystemError then."""
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        raise


def produce(
    spec: Spec, notes: Notes, stop: threading.Event, make: Callable[[Spec, Notes], Transactor] = Transactor
) -> None:
    """Make transactions until told to stop."""
    chance = random.Random(spec.seed)
    transactor = make(spec, notes)
    draw = plans.draw_transfer if spec.role in (Role.TRANSFER, Role.TRANSFER_JOINT) else plans.draw_append
    if spec.role is Role.APPEND:
        transactor.look = assigned(spec)
    while not stop.is_set():
        if not transactor.ready():
            stop.wait(_AGAIN_AFTER_S)
            continue
        transaction = transactor.next_name()
        transactor.transact(transaction, draw(chance, transaction, spec.topics))
        stop.wait(chance.expovariate(spec.rate))
    if transactor.look is not None:
        transactor.look.close()
