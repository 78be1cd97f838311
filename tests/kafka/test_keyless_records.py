"""Records without a key are kept out of compacted topics, and whoever sent them is told which they are (KIP-467)."""

import struct

import crc32c
import pytest
from confluent_kafka import KafkaError, Producer

from exacta.config.configuration import Configuration
from exacta.kafka.handlers.k00_produce import MOST_RECORD_ERRORS
from exacta.protocol.kafka.compression import CODECS, NONE, ZSTD
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopicConfig
from exacta.protocol.kafka.records import BatchHeader, CorruptBatch, iter_batches, validate_batch
from exacta.records.admission import Allowance, KeylessRecords, batch_rules
from tests.kafka.test_configs import DELETE, SET, changes
from tests.kafka.test_topics import create
from tests.kafka.wire import Front, Wire, produce
from tests.records.compacting import build
from tests.records.test_admission import NOW_MS


def batch(*keys: bytes | None, codec: int = NONE) -> bytes:
    return build(0, [(key, b"v", 1_000) for key in keys], codec=codec)


def stored(wire: Wire) -> list[BatchHeader]:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], min_bytes=1)
    records = bytes(wire.ask(request, 11).responses[0].partitions[0].records)
    return [header for header, _ in iter_batches(records)]


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS.keys())
def test_each_record_without_a_key_is_named(wire: Wire, policy: str, codec: int) -> None:
    create(wire, configs=[CreatableTopicConfig(name="cleanup.policy", value=policy)])
    answer = produce(wire, batch(b"k", None, b"", None, codec=codec))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert "2 records have no key" in answer.error_message
    message = "Compacted topic cannot accept message without key in topic partition t-0"
    assert [(each.batch_index, each.batch_index_error_message) for each in answer.record_errors] == [
        (1, message),
        (3, message),
    ]
    assert produce(wire, batch(b"k", None, codec=codec), version=7).error_code == ErrorCode.INVALID_RECORD
    accepted = produce(wire, batch(b"k", b"", codec=codec))
    assert (accepted.error_code, accepted.base_offset, accepted.record_errors) == (ErrorCode.NONE, 0, [])


def test_the_rule_follows_its_topic(wire: Wire) -> None:
    create(wire)
    assert produce(wire, batch(None)).error_code == ErrorCode.NONE
    changes(wire, ("cleanup.policy", SET, "compact"))
    assert produce(wire, batch(None)).error_code == ErrorCode.INVALID_RECORD
    changes(wire, ("cleanup.policy", DELETE, None))
    assert produce(wire, batch(None)).error_code == ErrorCode.NONE


def test_the_answer_names_no_more_than_it_must(wire: Wire) -> None:
    create(wire, configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")])
    answer = produce(wire, batch(*[None] * 1_000))
    assert "1000 records" in answer.error_message
    assert len(answer.record_errors) == MOST_RECORD_ERRORS


def _changed(records: bytes, at: int, value: int) -> bytes:
    changed = bytearray(records)
    changed[at] = value
    struct.pack_into(">I", changed, 17, crc32c.crc32c(bytes(changed[21:])))
    return bytes(changed)


@pytest.mark.parametrize("at", [61, 64, 65], ids=["length", "offset", "key"])
def test_records_that_cannot_be_read_are_refused(wire: Wire, at: int) -> None:
    create(wire, configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")])
    answer = produce(wire, _changed(batch(b"k"), at, 0x7E))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert answer.record_errors == []


def test_a_batch_is_opened_once_for_its_keys_and_its_codec(wire: Wire) -> None:
    create(wire, configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")])
    changes(wire, ("compression.type", SET, "zstd"))
    assert produce(wire, batch(b"k", None, codec=CODECS["gzip"])).error_code == ErrorCode.INVALID_RECORD
    assert produce(wire, batch(b"k" * 500, b"l", codec=CODECS["gzip"])).error_code == ErrorCode.NONE
    assert produce(wire, batch(b"k" * 500, b"l")).error_code == ErrorCode.NONE
    first, second = stored(wire)
    assert (first.compression, second.compression) == ("zstd", "zstd")


def test_what_is_opened_for_its_keys_counts() -> None:
    rules = batch_rules({"cleanup.policy": "compact"}, Configuration())
    assert rules is not None
    large = build(0, [(b"k", b"x" * 10_000, NOW_MS)], codec=ZSTD)
    plain = build(0, [(b"k", b"x" * 10_000, NOW_MS)])
    allowance = Allowance(15_000)
    for records in (plain, plain, large):
        assert rules.stamped(records, validate_batch(records), NOW_MS, allowance)[0] is records
    with pytest.raises(CorruptBatch):
        rules.stamped(large, validate_batch(large), NOW_MS, allowance)
    with pytest.raises(KeylessRecords):
        rules.stamped(batch(None), validate_batch(batch(None)), NOW_MS, allowance)


def test_how_many_records_are_read_is_bounded() -> None:
    rules = batch_rules({"cleanup.policy": "compact"}, Configuration())
    assert rules is not None
    allowance = Allowance(left_records=5)
    three = batch(b"a", b"b", b"c")
    rules.stamped(three, validate_batch(three), NOW_MS, allowance)
    with pytest.raises(CorruptBatch, match="in one request") as refused:
        rules.stamped(three, validate_batch(three), NOW_MS, allowance)
    assert refused.value.error_code == ErrorCode.MESSAGE_TOO_LARGE
    two = batch(b"a", b"b")
    rules.stamped(two, validate_batch(two), NOW_MS, allowance)


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_real_producer_is_told(broker: Front, wire: Wire, idempotent: bool) -> None:
    create(wire, configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")])
    host, port = broker.address
    producer = Producer(
        {"bootstrap.servers": f"{host}:{port}", "enable.idempotence": idempotent, "linger.ms": 0, "log_level": 0}
    )
    outcomes: list[int | None] = []

    def told(error: KafkaError | None, _: object) -> None:
        outcomes.append(None if error is None else error.code())

    for key in (b"k", None, b"k"):
        producer.produce("t", b"v", key=key, partition=0, on_delivery=told)
        assert producer.flush(10) == 0
    assert outcomes == [None, KafkaError.INVALID_RECORD, None]
    assert [header.base_offset for header in stored(wire)] == [0, 1]
