"""An entry in the log has Kafka's header, and is the producer's bit for bit."""

from typing import Any

import pytest

from exacta.core.ids import Body, ProducerEpoch, ProducerId
from exacta.protocol.kafka.batch_building import emptied
from exacta.protocol.kafka.committed import visible_batches
from exacta.protocol.kafka.records import CorruptBatch, parse_batch_header, sound_batches, validate_batch
from exacta.protocol.pulsar.entries import build_batch, build_entry, parse_entry
from exacta.protocol.pulsar.errors import BrokenEntry
from exacta.protocol.pulsar.messages_pb2 import MessageMetadata, SingleMessageMetadata
from exacta.records.pulsar_entries import delivery_facts, entry_of, enveloped, on_the_wire
from exacta.records.record_format import KafkaRecordFormat
from exacta.records.record_search import LATEST, find_record

SENT = build_entry(
    MessageMetadata(
        producer_name="tills",
        sequence_id=4,
        publish_time=1000,
        event_time=5,
        num_messages_in_batch=3,
        txnid_least_bits=9,
        txnid_most_bits=9,
    ),
    build_batch((SingleMessageMetadata(payload_size=0), b"%d apples" % number) for number in range(3)),
)
PLAIN = enveloped(parse_entry(SENT))


def placed(batch: bytes, offset: int) -> bytes:
    return b"".join(KafkaRecordFormat().place(batch, offset))


def test_the_header_says_what_the_log_must_know() -> None:
    header = parse_batch_header(PLAIN)
    assert (header.magic, header.size) == (Body.PULSAR, len(PLAIN))
    assert (header.record_count, header.last_offset_delta) == (3, 2)
    assert (header.base_timestamp, header.max_timestamp, header.log_append_time) == (1000, 1000, False)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert (header.transactional, header.control, header.compression) == (False, False, "none")


def test_the_transaction_is_the_one_that_the_broker_names() -> None:
    header = parse_batch_header(enveloped(parse_entry(SENT), ProducerId(7), ProducerEpoch(0)))
    assert (header.transactional, header.producer_id, header.producer_epoch) == (True, 7, 0)


def test_the_entry_comes_out_as_it_was_sent() -> None:
    stored = placed(PLAIN, 40)
    assert b"".join(on_the_wire(stored)) == SENT
    assert entry_of(stored) == parse_entry(SENT)


@pytest.mark.parametrize(
    ("fields", "deliver_at_ms"), [({}, 0), ({"deliver_at_time": 7_000}, 7_000), ({"deliver_at_time": -1}, 0)]
)
def test_delivery_is_told_the_key_and_the_time(fields: dict[str, Any], deliver_at_ms: int) -> None:
    hashes = set()
    for key in (b"apples", b"pears"):
        metadata = MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1000, partition_key=key, **fields)
        key_hash, time_ms = delivery_facts(enveloped(parse_entry(build_entry(metadata, b"x"))))
        assert time_ms == deliver_at_ms
        hashes.add(key_hash)
    assert len(hashes) == 2


def test_delivery_is_told_something_of_any_bytes() -> None:
    assert delivery_facts(PLAIN[:61]) == delivery_facts(emptied(parse_batch_header(PLAIN))) == (0, 0)


def test_it_is_sound_where_it_was_placed_and_no_bit_of_it_may_change() -> None:
    stored = placed(PLAIN, 40)
    assert KafkaRecordFormat().sound(stored, (40,)) == (len(stored), "")
    for at in range(len(stored)):
        broken = bytearray(stored)
        broken[at] ^= 1
        assert sound_batches(broken, (40,))[0] == 0, at


def test_no_client_of_kafka_may_send_or_gets_one() -> None:
    with pytest.raises(CorruptBatch, match="magic 80; only 2 is served"):
        validate_batch(PLAIN)
    with pytest.raises(CorruptBatch, match="magic 80; only 2 is served"):
        list(visible_batches(memoryview(PLAIN), (), committed_only=True))


def test_all_of_it_has_one_time() -> None:
    stored = placed(PLAIN, 40)
    assert find_record(stored, 1000, 41) == (41, 1000)
    assert find_record(stored, 1001, 40) is None
    assert find_record(stored, LATEST, 40) == (40, 1000)


def test_an_emptied_one_holds_no_entry() -> None:
    empty = emptied(parse_batch_header(placed(PLAIN, 40)))
    header = parse_batch_header(empty)
    assert (header.magic, header.record_count, header.last_offset) == (Body.PULSAR, 0, 42)
    with pytest.raises(BrokenEntry):
        entry_of(empty)
