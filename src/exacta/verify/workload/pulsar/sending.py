"""Send messages by Pulsar's own client, singly and in batches, each as often as it takes until its receipt comes."""

import random
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pulsar

from exacta.verify.history import Begin, CommitAsked, End, Outcome
from exacta.verify.workload.notes import Notes
from exacta.verify.workload.plan import draw_append
from exacta.verify.workload.pulsar.clients import connected, offset_of, producer_of
from exacta.verify.workload.pulsar.side import Place
from exacta.verify.workload.spec import Spec

_AGAIN_AFTER_S = 0.2


def send(spec: Spec, notes: Notes, stop: threading.Event) -> None:
    """Send until told to stop."""
    chance = random.Random(spec.seed)
    client = connected(spec.pulsar)
    producers: dict[Place, Any] = {}
    for number in count(1):
        if stop.is_set():
            break
        name = f"{spec.name}.{number}"
        for topic, partition, value in draw_append(chance, name, spec.topics).records:
            place = (topic, partition)
            producer = producers.get(place)
            while producer is None and not stop.is_set():
                try:
                    batching = chance.random() < 0.5
                    producer = producer_of(client, place, f"{spec.name}-{topic}-{partition}", batching=batching)
                except pulsar.PulsarException:
                    stop.wait(_AGAIN_AFTER_S)
            if producer is not None:
                producers[place] = producer
                _send(spec, notes, producer, place, value)
        stop.wait(chance.expovariate(spec.rate))
    for producer in producers.values():
        producer.flush()
    client.close()


def _send(spec: Spec, notes: Notes, producer: Any, place: Place, value: str) -> None:
    """Send one message: in this history it is a transaction of its own, with the name that its value begins with."""
    transaction = value.replace("/", ".")
    begin = Begin(
        process=spec.process,
        producer=spec.name,
        transactional_id="",
        transaction=transaction,
        at_us=notes.now_us(),
        records=[(*place, f"{transaction}/0")],
    )
    notes.write(begin)
    notes.write(CommitAsked(process=spec.process, transaction=transaction, at_us=notes.now_us()))
    producer.send_async(f"{transaction}/0".encode(), _received(spec, notes, transaction))


def _received(spec: Spec, notes: Notes, transaction: str) -> Callable[[Any, Any], None]:
    def note(result: Any, message_id: Any) -> None:
        is_there = result == pulsar.Result.Ok
        end = End(
            process=spec.process,
            transaction=transaction,
            at_us=notes.now_us(),
            committing=True,
            outcome=Outcome.OK if is_there else Outcome.UNKNOWN,
            offsets=[_told(message_id) if is_there else None],
            error="" if is_there else str(result),
        )
        notes.write(end)

    return note


def _told(message_id: Any) -> int | None:
    """Return the offset in a receipt; a repeat is not told where it lies."""
    return offset_of(message_id) if 0 <= message_id.entry_id() < 2**63 - 1 else None
