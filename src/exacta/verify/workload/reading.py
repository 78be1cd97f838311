"""Readers: one that watches live until it is told to stop, and the final read, which comes to every partition's end."""

import threading
import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from exacta.verify.history import Isolation, Poll, ReadTo
from exacta.verify.workload.clients import consumer
from exacta.verify.workload.notes import Notes
from exacta.verify.workload.spec import Spec

_MOST = 500
_WAIT_S = 0.1
_PROGRESS_WITHIN_S = 60.0
_AGAIN_AFTER_S = 0.5


def watch(spec: Spec, notes: Notes, stop: threading.Event) -> None:
    """Read everything from the start, and on, until told to stop; each session that breaks begins again."""
    session = 0
    while not stop.is_set():
        session += 1
        reader = assigned(spec)
        try:
            while not stop.is_set():
                look(reader, spec.process, spec.isolation, notes, session=f"{spec.incarnation}.{session}")
        except KafkaException:
            stop.wait(_AGAIN_AFTER_S)
        finally:
            reader.close()


def read_to_the_end(spec: Spec, notes: Notes) -> None:
    """Read every partition up to its end, and write down how far that was.

    However long it takes: it gives up only when nothing new has come for a while.
    """
    reader = assigned(spec, **{"enable.partition.eof": True})
    ends = {(topic, partition): end for topic, each in spec.until.items() for partition, end in enumerate(each)}
    next_offsets = dict.fromkeys(ends, 0)
    whole: set[tuple[str, int]] = set()
    progress_s = time.monotonic()
    while whole != ends.keys() and time.monotonic() - progress_s < _PROGRESS_WITHIN_S:
        for message in look(reader, spec.process, spec.isolation, notes, session="final", final=True):
            place, is_end = (message.topic(), message.partition()), is_end_of_partition(message)
            if message.error() is not None and not is_end:
                continue
            if is_end and message.offset() >= ends[place]:
                whole.add(place)
            # An offset that comes again is no progress: who gets the same for ever must not read for ever.
            next_offset = message.offset() + (0 if is_end else 1)
            if next_offset > next_offsets[place]:
                next_offsets[place] = next_offset
                progress_s = time.monotonic()
    for topic, partition in sorted(ends):
        read = ReadTo(
            process=spec.process,
            isolation=spec.isolation,
            topic=topic,
            partition=partition,
            next_offset=next_offsets[topic, partition],
            whole=(topic, partition) in whole,
        )
        notes.write(read)
    reader.close()


def assigned(spec: Spec, **more: object) -> Consumer:
    """Return a consumer of all partitions, from their first offsets on, which is in no group."""
    found = consumer(spec.client, spec.isolation, f"{spec.process}-alone", **more)
    found.assign(
        [TopicPartition(topic, partition, 0) for topic, count in spec.topics.items() for partition in range(count)]
    )
    return found


def look(
    reader: Consumer,
    process: str,
    isolation: Isolation,
    notes: Notes,
    *,
    session: str | None = None,
    final: bool = False,
    transaction: str | None = None,
) -> list[Message]:
    """Poll once and write down what came; return it, with errors and ends of partitions."""
    start_us = notes.now_us()
    messages = reader.consume(_MOST, _WAIT_S)
    end_us = notes.now_us()
    for (topic, partition), records in by_partition(messages).items():
        poll = Poll(
            process=process,
            isolation=isolation,
            start_us=start_us,
            end_us=end_us,
            topic=topic,
            partition=partition,
            records=records,
            session=session,
            final=final,
            transaction=transaction,
        )
        notes.write(poll)
    return list(messages)


def is_end_of_partition(message: Message) -> bool:
    """Say whether this is no record, but the end: its offset is the end offset."""
    return message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF


def by_partition(messages: Iterable[Message]) -> dict[tuple[str, int], list[tuple[int, str]]]:
    """Return the records among `messages`, offset and value; errors that pass are left out."""
    found: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for message in messages:
        if message.error() is None:
            value = (message.value() or b"").decode(errors="backslashreplace")
            found.setdefault((message.topic(), message.partition()), []).append((message.offset(), value))
    return found
