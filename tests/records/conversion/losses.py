"""The losses of a round trip, as data: each with its name, which `docs/reference/conversion.md` lists, and an example.

`there_and_back` is the original with all of its losses: what must come out of the round trip.
"""

import base64
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from exacta.ports.record_format import LogEntry
from exacta.protocol.kafka.record_writing import encoded_headers
from exacta.protocol.pulsar.messages_pb2 import MessageMetadata, Property, SingleMessageMetadata
from exacta.records.conversion import names
from exacta.records.conversion.user_headers import is_text
from tests.records.conversion.batches import (
    KafkaBatch,
    KafkaRecord,
    PulsarEntry,
    PulsarMessage,
    kafka_batch,
    pulsar_entry,
)

B = TypeVar("B", KafkaBatch, PulsarEntry)


class Loss(NamedTuple, Generic[B]):
    """A loss: which, what it makes of a batch, and a batch that has it."""

    name: str
    lose: Callable[[B], B]
    example: LogEntry


def there_and_back(batch: B, losses: tuple[Loss[B], ...]) -> B:
    """Return the batch with all losses, one after the other."""
    for loss in losses:
        batch = loss.lose(batch)
    return batch


# --- Kafka, Pulsar, Kafka ---------------------------------------------------------------------------------------------


def _each_record(change: Callable[[KafkaBatch, KafkaRecord], KafkaRecord]) -> Callable[[KafkaBatch], KafkaBatch]:
    return lambda batch: batch._replace(records=tuple(change(batch, each) for each in batch.records))


def _own_headers_last(_: KafkaBatch, record: KafkaRecord) -> KafkaRecord:
    own = [each for each in record.headers if each[0] == names.ORDERING_KEY]
    return record._replace(headers=tuple(sorted(record.headers, key=own.__contains__)))


def _with_own_headers(batch: KafkaBatch, record: KafkaRecord) -> KafkaRecord:
    producer_id, _, _ = batch.producer
    name = b"kafka-%d" % producer_id if producer_id >= 0 else b"kafka"
    time = [(names.EVENT_TIME, b"%d" % record.timestamp_ms)]
    added = [
        *(time if record.timestamp_ms > 0 and not batch.log_append_time else []),
        (names.SEQUENCE_ID, b"%d" % record.offset),
        (names.PRODUCER_NAME, name),
    ]
    return record._replace(headers=(*record.headers, *added))


def _at_one_time(batch: KafkaBatch, record: KafkaRecord) -> KafkaRecord:
    return record._replace(timestamp_ms=max(each.timestamp_ms for each in batch.records))


def _without_producer(batch: KafkaBatch) -> KafkaBatch:
    producer_id, epoch, _ = batch.producer
    return batch._replace(producer=(producer_id, epoch, -1) if batch.transactional else (-1, -1, -1))


def _without_mark(_: KafkaBatch, record: KafkaRecord) -> KafkaRecord:
    says_something = record.key is not None and is_text(record.key)
    mark = (names.KEY_IS_BYTES, names.TRUE)
    is_one = record.headers.count(mark) == 1
    return record._replace(
        headers=tuple(each for each in record.headers if says_something or not is_one or each != mark)
    )


PLAIN = [(1_000, b"k", b"v", ()), (900, None, None, [(b"a", b"b")])]

OF_KAFKAS: tuple[Loss[KafkaBatch], ...] = (
    Loss(
        "the place of the conversion's own headers",
        _each_record(_own_headers_last),
        kafka_batch([(1_000, b"k", b"v", [(names.ORDERING_KEY, b"o"), (b"a", b"b")])]),
    ),
    Loss(
        "a mark of bytes where the key says it itself",
        _each_record(_without_mark),
        kafka_batch([(1_000, b"\xff", b"v", [(names.KEY_IS_BYTES, names.TRUE)])]),
    ),
    Loss("headers are added", _each_record(_with_own_headers), kafka_batch(PLAIN)),
    Loss("the time of each record", _each_record(_at_one_time), kafka_batch(PLAIN)),
    Loss(
        "a time before 1970",
        _each_record(lambda _, record: record._replace(timestamp_ms=max(record.timestamp_ms, 0))),
        kafka_batch([(-7, b"k", b"v", ())], first_ms=-7),
    ),
    Loss(
        "whose clock the time is of",
        lambda batch: batch._replace(log_append_time=False),
        kafka_batch(PLAIN, log_append_ms=5_000),
    ),
    Loss("the producer, outside of transactions", _without_producer, kafka_batch(PLAIN, producer=(3, 1, 4))),
    Loss(
        "the sequence number",
        _without_producer,
        kafka_batch(PLAIN, producer=(3, 1, 4), transactional=True),
    ),
)


# --- Pulsar, Kafka, Pulsar --------------------------------------------------------------------------------------------


def _each_message(change: Callable[[PulsarMessage], PulsarMessage]) -> Callable[[PulsarEntry], PulsarEntry]:
    return lambda entry: entry._replace(messages=tuple(map(change, entry.messages)))


def _renamed(message: PulsarMessage) -> PulsarMessage:
    return message._replace(
        properties=tuple((name.replace(b"\xff", b"?"), value) for name, value in message.properties)
    )


def _with_all_headers(message: PulsarMessage) -> PulsarMessage:
    named = {name for name, _ in message.properties}
    shown = tuple(each for each in message.properties if b"\xff" not in each[1])
    if len(named) == len(shown) == len(message.properties) or names.KAFKA_HEADERS in named:
        return message
    everything = base64.b64encode(encoded_headers(message.properties))
    return message._replace(properties=(*shown, (names.KAFKA_HEADERS, everything)))


def _with_field(message: PulsarMessage) -> PulsarMessage:
    found = dict(message.properties)
    if names.EVENT_TIME not in found:
        return message
    told = found.pop(names.EVENT_TIME)
    return message._replace(properties=tuple(found.items()), event_time=int(told))


def _key_as_bytes(message: PulsarMessage) -> PulsarMessage:
    return message._replace(key_is_bytes=True) if message.key == b"\xff" else message


def _without(entry: PulsarEntry, *fields: str) -> PulsarEntry:
    return entry._replace(shared={name: value for name, value in entry.shared.items() if name not in fields})


def _sent(*properties: tuple[bytes, bytes], **fields: object) -> LogEntry:
    """Return a batch of two messages of which the second one has these fields."""
    metadata = MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000)
    told = [Property(key=name, value=value) for name, value in properties]
    second = SingleMessageMetadata(payload_size=0, properties=told, **fields)  # type: ignore[arg-type]
    return pulsar_entry(metadata, [(SingleMessageMetadata(payload_size=0), b"apples"), (second, b"pears")])


def _entry(**fields: object) -> LogEntry:
    metadata = MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000, **fields)  # type: ignore[arg-type]
    return pulsar_entry(metadata, [(SingleMessageMetadata(payload_size=0), b"apples")])


OF_PULSARS: tuple[Loss[PulsarEntry], ...] = (
    Loss(
        "one message or a batch of one",
        lambda entry: entry._replace(is_batch=True),
        pulsar_entry(MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000), b"apples"),
    ),
    Loss(
        "the publish time, where the broker's counts",
        lambda entry: entry._replace(publish_time=entry.log_append_ms or entry.publish_time, log_append_ms=None),
        pulsar_entry(
            MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1_000), b"apples", log_append_ms=5_000
        ),
    ),
    Loss("a null key", _each_message(lambda each: each._replace(says_null_key=False)), _sent(null_partition_key=True)),
    Loss("a text key that is no text", _each_message(_key_as_bytes), _sent(partition_key=b"\xff")),
    Loss(
        "the payload of a null value",
        _each_message(lambda each: each._replace(payload=b"" if each.is_null else each.payload)),
        _sent(null_value=True),
    ),
    Loss("a property's name that is no text", _each_message(_renamed), _sent((b"a\xff", b"b"))),
    Loss("a property's value that is no text", _each_message(_with_all_headers), _sent((b"a", b"\xff"), (b"b", b"c"))),
    Loss("a property comes twice", _each_message(_with_all_headers), _sent((b"a", b"b"), (b"a", b"c"))),
    Loss("a property of a reserved name", _each_message(_with_field), _sent((names.EVENT_TIME, b"7"))),
    Loss(
        "the highest sequence id",
        lambda entry: _without(entry, "highest_sequence_id"),
        _entry(highest_sequence_id=9),
    ),
    Loss(
        "the transaction that the metadata name",
        lambda entry: _without(entry, "txnid_least_bits", "txnid_most_bits"),
        _entry(txnid_least_bits=1, txnid_most_bits=2),
    ),
)
