"""Consume, transform and produce as a member of a consumer group, whose offsets go with its transactions (KIP-447).

A member goes and comes again now and then, so that the group is rebalanced even if nobody is killed. After a
transaction that is not known to be committed, it reads on from where the group has committed.

Now and then a member dawdles in the midst of a transaction until the group has gone on without it, before it sends its
offsets or after that. Then either the offsets must be refused, because the generation is over, or the member that has
the partitions now must be kept from reading until the transaction has ended.
"""

import random
import threading
from enum import Enum, auto

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from exacta.verify.history import Fault, Isolation, Poll
from exacta.verify.workload import plan as plans
from exacta.verify.workload.clients import CALL_S, POLL_WITHIN_MS, consumer
from exacta.verify.workload.notes import Notes
from exacta.verify.workload.producing import Transactor
from exacta.verify.workload.reading import by_partition
from exacta.verify.workload.spec import Spec

_MOST_INPUTS = 10
_WAIT_S = 0.2
_AGAIN_AFTER_S = 0.2
_LEAVES_ONCE_IN = 60
_DAWDLES_S = POLL_WITHIN_MS / 1000 + 4.0


class _Dawdles(Enum):
    """The moments at which a member is slow: before or after it sends its offsets."""

    BEFORE = auto()
    AFTER = auto()


def transform(spec: Spec, notes: Notes, stop: threading.Event) -> None:
    """Transform until told to stop."""
    chance = random.Random(spec.seed)
    transactor = Transactor(spec, notes)
    member: Consumer | None = None
    beginning = Beginning()
    while not stop.is_set():
        try:
            if not transactor.ready():
                stop.wait(_AGAIN_AFTER_S)
                continue
            if member is None:
                member = consumer(spec.client, Isolation.COMMITTED, spec.group, **{"auto.offset.reset": "error"})
                # With callbacks the group goes on with this member only while it polls; without, behind its back.
                member.subscribe([spec.source], on_assign=beginning, on_revoke=_taken, on_lost=_taken)
            placed = _transform_some(spec, notes, chance, transactor, member, stop)
            beginning.check()
            if not placed or chance.randrange(_LEAVES_ONCE_IN) == 0:
                now_us = notes.now_us()
                member.close()
                member = None
                notes.write(Fault(kind="member leaves", target=spec.process, start_us=now_us, end_us=notes.now_us()))
        except KafkaException:
            # Whatever its position is by now: another member begins where the group is.
            if member is not None:
                member.close()
            member = None
            stop.wait(_AGAIN_AFTER_S)
        stop.wait(chance.expovariate(spec.rate))
    if member is not None:
        member.close()


class Beginning:
    """Lets a member read on where the group has committed, as a callback that fails without raising.

    By itself librdkafka may take a partition for new that is not. It does so where a transaction holds the offset back
    and the coordinator goes away meanwhile (decision 0021). An exception that confluent_kafka raises inside a callback
    comes out of it as something that no `except` clause catches.
    """

    def __init__(self) -> None:
        self._failure: KafkaException | None = None

    def __call__(self, member: Consumer, partitions: list[TopicPartition]) -> None:
        """Assign the partitions, or nothing if the coordinator does not say where the group is."""
        try:
            member.assign(_committed(member, partitions))
        except KafkaException as failure:
            self._failure = failure
            member.assign([])

    def check(self) -> None:
        """Raise the KafkaException with which the callback has failed, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


def _committed(member: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Return where the group is in these partitions; raises KafkaException."""
    positions: list[TopicPartition] = []
    for found in member.committed(partitions, CALL_S):
        if found.error is not None:
            raise KafkaException(found.error)
        positions.append(TopicPartition(found.topic, found.partition, max(0, found.offset)))
    return positions


def _taken(member: Consumer, partitions: list[TopicPartition]) -> None:
    """Let librdkafka do as it does."""


def _transform_some(
    spec: Spec, notes: Notes, chance: random.Random, transactor: Transactor, member: Consumer, stop: threading.Event
) -> bool:
    """Transform what comes with one poll; return whether the member's position is right afterwards."""
    start_us = notes.now_us()
    found = by_partition(member.consume(_MOST_INPUTS, _WAIT_S))
    end_us = notes.now_us()
    # Taken now: a later one might be of a generation to which these records do not belong, or of none.
    generation = member.consumer_group_metadata()
    if not found:
        return True
    for (topic, partition), records in found.items():
        poll = Poll(
            process=spec.process,
            isolation=Isolation.COMMITTED,
            start_us=start_us,
            end_us=end_us,
            topic=topic,
            partition=partition,
            records=records,
        )
        notes.write(poll)
    sources = [(*place, offset) for place, records in found.items() for offset, _ in records]
    positions = [TopicPartition(*place, records[-1][0] + 1) for place, records in found.items()]
    transaction = transactor.next_name()
    plan = plans.draw_etl(chance, transaction, spec.topics, sources)

    dawdles = chance.choice(list(_Dawdles)) if chance.random() < spec.dawdle_chance else None

    def send_offsets(producer: Producer) -> None:
        if dawdles is _Dawdles.BEFORE:
            _dawdle(spec, notes, stop)
        producer.send_offsets_to_transaction(positions, generation, CALL_S)
        if dawdles is _Dawdles.AFTER:
            _dawdle(spec, notes, stop)

    committed = transactor.transact(transaction, plan, sources, send_offsets)
    if dawdles is not None:
        return False
    if committed:
        return True
    # What is unknown is decided once a producer has the transactional id again.
    if not transactor.ready():
        return False
    for position in _committed(member, member.assignment()):
        member.seek(position)
    return True


def _dawdle(spec: Spec, notes: Notes, stop: threading.Event) -> None:
    start_us = notes.now_us()
    stop.wait(_DAWDLES_S)
    notes.write(Fault(kind="member dawdles", target=spec.process, start_us=start_us, end_us=notes.now_us()))
