"""What a topic's configurations say about batches: sizes and timestamps, as they change while the topic lives."""

import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

import crc32c
import pytest

from exacta.config.configuration import Configuration
from exacta.core.ids import TransactionVersion
from exacta.kafka.config_source import ResourceType
from exacta.protocol.kafka.batch_building import data_batch
from exacta.protocol.kafka.compression import NONE as NONE_CODEC
from exacta.protocol.kafka.compression import ZSTD, compress
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from exacta.protocol.kafka.records import (
    HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    iter_batches,
    opened,
    recompressed,
    validate_batch,
    with_max_timestamp,
)
from exacta.records import admission
from exacta.records.admission import Admitted, Allowance, KnownRules, NeedsThread, Refused, admit, batch_rules
from simulation.clients.batches import record
from tests.kafka.by_hand import Broker
from tests.kafka.test_configs import DELETE, SET, changes
from tests.kafka.test_topics import create
from tests.kafka.wire import Wire, batch, produce, values_in

NOW_MS = 1_000_000
NONE = ErrorCode.NONE


def stored(wire: Wire) -> list[tuple[BatchHeader, list[bytes]]]:
    """Fetch all batches of the topic, with their values; the reader checks their checksums."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], min_bytes=1)
    records = bytes(wire.ask(request, 11).responses[0].partitions[0].records)
    for _, view in iter_batches(records):
        validate_batch(view)
    return [(header, values_in(view)) for header, view in iter_batches(records)]


def created(**configs: str) -> CreateTopicsRequest:
    wanted = [CreatableTopicConfig(name=name, value=value) for name, value in configs.items()]
    return CreateTopicsRequest(
        topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=wanted)]
    )


def altered(max_message_bytes: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name="max.message.bytes", config_operation=SET, value=max_message_bytes)
    resource = AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name="t", configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource])


def error_of(answer: Any) -> int:
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def says_log_append_time(records: bytes) -> bytes:
    changed = bytearray(records)
    changed[22] |= 0x08
    struct.pack_into(">I", changed, 17, crc32c.crc32c(bytes(changed[21:])))
    return bytes(changed)


def zstd(records: bytes) -> bytes:
    return recompressed(records, opened(records, validate_batch(records), 1 << 20), ZSTD, 3)


def test_the_size_limit_follows_its_changes(wire: Wire) -> None:
    create(wire)
    large = batch(b"x" * 200)
    assert produce(wire, large).error_code == ErrorCode.NONE
    changes(wire, ("max.message.bytes", SET, "100"))
    assert produce(wire, large).error_code == ErrorCode.MESSAGE_TOO_LARGE
    changes(wire, ("max.message.bytes", DELETE, None))
    assert produce(wire, large).error_code == ErrorCode.NONE
    assert produce(wire, batch(b"x" * 2_000_000), topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topics_rules_are_read_once_and_again_when_its_configurations_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[object] = []
    configuration = Configuration()

    def counted(configs: dict[str, str], configuration: Configuration) -> Any:
        read.append(configs)
        return batch_rules(configs, configuration)

    monkeypatch.setattr(admission, "batch_rules", counted)
    monkeypatch.setattr(admission, "MAX_KNOWN_RULES", 2)
    known = KnownRules(lambda: configuration)
    read.clear()
    first, second = {"max.message.bytes": "5"}, {"max.message.bytes": "6"}
    for configs in (first, first, second, second, {}, {}, None, second):
        rules = known.of("t", configs)
        assert (configs is None) == (rules is None)
        if configs is not None and rules is not None:
            assert rules.max_bytes == int(configs.get("max.message.bytes", Configuration().message_max_bytes))
    assert read == [first, second, second], "what is deleted is forgotten"
    for topic in ("u", "v", "w"):
        known.of(topic, first)
        assert len(known._known) <= 2


def test_an_altered_configuration_holds_for_the_next_request_on_the_wire() -> None:
    broker = Broker()
    client = broker.connect()
    broker.ask(client, created(**{"max.message.bytes": "1000"}), 7)
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch(b"x" * 200))])
    write = ProduceRequest(acks=-1, topic_data=[data])
    assert error_of(broker.ask(client, write, 9)) == ErrorCode.NONE
    sent = [(write, 9), (altered("100"), 1), (write, 9), (altered("1000"), 1), (write, 9)]
    client.send_bytes(b"".join(client.frame(*each) for each in sent))
    broker.settle()
    answers = [answer for _, answer in client.answers()]
    assert [error_of(answers[each]) for each in (0, 2, 4)] == [NONE, ErrorCode.MESSAGE_TOO_LARGE, NONE]


@pytest.mark.parametrize("version", [3, 8, 11])
def test_with_log_append_time_the_broker_stamps_batches(wire: Wire, version: int) -> None:
    create(wire)
    changes(wire, ("message.timestamp.type", SET, "LogAppendTime"), ("message.timestamp.before.max.ms", SET, "5"))
    before_ms = time.time_ns() // 1_000_000
    answer = produce(wire, batch(b"a", b"b", timestamp_ms=1_000), version=version)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert answer.log_append_time_ms >= before_ms
    [(header, values)] = stored(wire)
    assert (header.max_timestamp, header.log_append_time) == (answer.log_append_time_ms, True)
    assert header.base_timestamp == 1_000, "as Apache Kafka leaves it"
    assert values == [b"a", b"b"]
    changes(wire, ("message.timestamp.type", DELETE, None), ("message.timestamp.before.max.ms", DELETE, None))
    assert produce(wire, batch(b"c", timestamp_ms=1_000)).log_append_time_ms == -1
    assert [header.log_append_time for header, _ in stored(wire)] == [True, False]


def test_a_repeat_has_the_timestamp_of_its_batch(wire: Wire) -> None:
    create(wire)
    bound = wire.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4)

    def send(sequence: int) -> Any:
        return produce(wire, batch(b"v", producer_id=bound.producer_id, producer_epoch=0, base_sequence=sequence))

    assert [send(0).log_append_time_ms, send(0).log_append_time_ms] == [-1, 1_000]
    changes(wire, ("message.timestamp.type", SET, "LogAppendTime"))
    first = send(1)
    again = send(1)
    assert first.log_append_time_ms > 1_000
    assert (again.base_offset, again.log_append_time_ms) == (first.base_offset, first.log_append_time_ms)
    assert send(0).log_append_time_ms == 1_000


def test_who_sets_timestamps_is_not_the_producers_to_say(wire: Wire) -> None:
    create(wire)
    claiming = says_log_append_time(batch(b"v", timestamp_ms=1_000))
    assert produce(wire, claiming).error_code == ErrorCode.NONE
    [(header, _)] = stored(wire)
    assert (header.max_timestamp, header.log_append_time) == (1_000, False)
    changes(wire, ("message.timestamp.type", SET, "LogAppendTime"))
    assert produce(wire, claiming).error_code == ErrorCode.INVALID_TIMESTAMP


def test_timestamps_out_of_range_are_refused(wire: Wire) -> None:
    create(wire)
    now_ms = time.time_ns() // 1_000_000
    assert produce(wire, batch(b"v", timestamp_ms=now_ms + 3_500_000)).error_code == ErrorCode.NONE
    refused = produce(wire, batch(b"v", timestamp_ms=now_ms + 3_700_000))
    assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_TIMESTAMP, -1)
    assert str(now_ms + 3_700_000) in refused.error_message
    changes(wire, ("message.timestamp.before.max.ms", SET, "60000"))
    assert produce(wire, batch(b"v", timestamp_ms=now_ms - 120_000)).error_code == ErrorCode.INVALID_TIMESTAMP
    assert produce(wire, batch(b"v", timestamp_ms=now_ms)).error_code == ErrorCode.NONE
    assert produce(wire, batch(b"v", timestamp_ms=-1)).error_code == ErrorCode.NONE, "it has none"


@pytest.mark.parametrize("codec", [NONE_CODEC, ZSTD])
@pytest.mark.parametrize(
    ("times_ms", "fits"),
    [
        ((NOW_MS, NOW_MS - 10, NOW_MS + 20), True),
        ((NOW_MS, NOW_MS - 11, NOW_MS), False),
        ((NOW_MS, NOW_MS + 21, NOW_MS), False),
        ((-1, NOW_MS), True),
        ((-1, -1), True),
        ((-1, NOW_MS, NOW_MS - 11), False),
        ((-2, NOW_MS), False),
        ((NOW_MS, 2**63 + 5), False),
    ],
)
def test_a_batch_is_judged_by_the_times_of_its_records(times_ms: tuple[int, ...], fits: bool, codec: int) -> None:
    configs = {"message.timestamp.before.max.ms": "10", "message.timestamp.after.max.ms": "20"}
    for said_ms in (-1, NOW_MS, 2**62):
        found = admitted(said(with_times(times_ms), said_ms, codec), configs)
        if fits:
            assert isinstance(found, Admitted)
            header = validate_batch(found.records)
            assert found.max_timestamp_ms == header.max_timestamp == max(times_ms)
        else:
            assert isinstance(found, Refused)
            assert found.error_code == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("said_ms", [-(2**63), -1, 0, 999, 1_001, 2**63 - 1])
def test_the_highest_time_is_the_one_of_the_records_whatever_the_header_says(said_ms: int) -> None:
    honest = batch(b"a", b"b", timestamps_ms=(1_000, 998))
    found = admitted(said(honest, said_ms))
    assert isinstance(found, Admitted)
    assert (bytes(found.records), found.max_timestamp_ms) == (honest, 1_000)
    honest_one = admitted(honest)
    assert isinstance(honest_one, Admitted)
    assert honest_one.records is honest, "a batch that says the truth is not copied"


def test_records_of_before_1970_have_no_highest_time_as_in_kafka() -> None:
    found = admitted(batch(b"a", b"b", timestamps_ms=(-5, -7)))
    assert isinstance(found, Admitted)
    assert found.max_timestamp_ms == validate_batch(found.records).max_timestamp == -1


def test_a_delete_horizon_is_not_the_producers_to_say() -> None:
    """Compaction would take a producer's first time for it, and remove tombstones at once (KIP-534)."""
    claiming = bytearray(batch(b"v"))
    claiming[22] |= 0x40
    struct.pack_into(">I", claiming, 17, crc32c.crc32c(bytes(claiming[21:])))
    configs: dict[str, str]
    for configs in ({}, {"message.timestamp.type": "LogAppendTime"}):
        found = admitted(bytes(claiming), configs)
        assert isinstance(found, Admitted)
        assert validate_batch(found.records).delete_horizon_ms is None


@pytest.mark.parametrize("codec", [NONE_CODEC, ZSTD])
@pytest.mark.parametrize(("count", "cut"), [(1, 0), (3, 0), (2, 1)], ids=["more", "fewer", "the end is missing"])
def test_other_records_than_the_header_says_are_refused(count: int, cut: int, codec: int) -> None:
    records = batch(b"a", b"b")[HEADER_SIZE:]
    lies = data_batch(
        [compress(codec, records[: len(records) - cut], 3)],
        count,
        compression=codec,
        transactional=False,
        first_timestamp_ms=NOW_MS,
        last_timestamp_ms=NOW_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
    )
    found = admitted(lies)
    assert isinstance(found, Refused)
    assert (found.error_code, "cannot be read" in found.reason) == (ErrorCode.INVALID_RECORD, True)


def test_what_expands_without_end_is_too_large() -> None:
    """Java's producer divides such a batch, and sends the halves."""
    found = admitted(zstd(batch(b"x" * 10_000)), allowance=Allowance(9_000))
    assert isinstance(found, Refused)
    assert found.error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [NONE_CODEC, ZSTD])
def test_the_event_loop_reads_the_times_of_few_records(codec: int) -> None:
    few, many = (said(batch(*[b"v"] * count), 1_000, codec) for count in (2, 4))
    allowance = Allowance(inline_bytes=1 << 16, inline_records=5)
    assert isinstance(admitted(few, allowance=allowance), Admitted)
    with pytest.raises(NeedsThread):
        admitted(many, allowance=allowance)
    assert isinstance(admitted(many, allowance=Allowance(inline_records=0)), Admitted), "a thread reads as many as come"


def admitted(
    records: bytes, configs: Mapping[str, str] | None = None, allowance: Allowance | None = None
) -> Admitted | Refused:
    return admit(
        records,
        batch_rules(configs or {}, Configuration()),
        NOW_MS,
        allowance or Allowance(),
        transactional_id=None,
        version=TransactionVersion.V2,
    )


def said(records: bytes, highest_ms: int, codec: int = NONE_CODEC) -> bytes:
    """Return the batch with this highest time in its header, in this codec."""
    lies = with_max_timestamp(records, highest_ms, log_append_time=False)
    return recompressed(lies, lies[HEADER_SIZE:], codec, 3) if codec else lies


def with_times(times_ms: Sequence[int]) -> bytes:
    """Return a batch of records of these times, which may be above what a header can say."""
    written = [record(number, b"v", time_ms - times_ms[0]) for number, time_ms in enumerate(times_ms)]
    return data_batch(
        written,
        len(written),
        compression=0,
        transactional=False,
        first_timestamp_ms=times_ms[0],
        last_timestamp_ms=times_ms[0],
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
    )


def test_batches_are_kept_in_the_codec_of_their_topic(wire: Wire) -> None:
    create(wire)
    changes(wire, ("compression.type", SET, "zstd"), ("message.timestamp.type", SET, "LogAppendTime"))
    sent = batch(b"x" * 200, b"y" * 200)
    assert produce(wire, sent).error_code == ErrorCode.NONE
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], min_bytes=1)
    kept = bytes(wire.ask(request, 11).responses[0].partitions[0].records)
    header = validate_batch(kept)
    assert (header.compression, header.record_count, header.log_append_time) == ("zstd", 2, True)
    assert len(kept) < len(sent)
    assert produce(wire, kept[:22] + b"\x04" + kept[23:]).error_code == ErrorCode.CORRUPT_MESSAGE
    changes(wire, ("compression.type", SET, "uncompressed"), ("message.timestamp.type", DELETE, None))
    plain = zstd(sent)
    assert produce(wire, plain).error_code == ErrorCode.NONE
    assert stored(wire)[1][1] == [b"x" * 200, b"y" * 200]


def test_what_cannot_be_decompressed_is_refused(wire: Wire) -> None:
    create(wire)
    changes(wire, ("compression.type", SET, "gzip"))
    lies = bytearray(batch(b"no zstd frame"))
    lies[22] |= ZSTD
    struct.pack_into(">I", lies, 17, crc32c.crc32c(bytes(lies[21:])))
    answer = produce(wire, bytes(lies))
    assert answer.error_code == ErrorCode.INVALID_RECORD


def test_the_size_limit_is_of_what_is_kept(wire: Wire) -> None:
    create(wire)
    changes(wire, ("compression.type", SET, "uncompressed"), ("max.message.bytes", SET, "5000"))
    plain = batch(b"x" * 10_000)
    small = zstd(plain)
    assert len(small) < 1000
    assert produce(wire, small).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_what_one_request_decompresses_is_bounded() -> None:
    rules = batch_rules({"compression.type": "uncompressed", "max.message.bytes": str(1 << 20)}, Configuration())
    assert rules is not None
    plain = batch(b"x" * 10_000)
    small = zstd(plain)
    allowance = Allowance(25_000)
    for _ in range(2):
        rules.stamped(small, validate_batch(small), NOW_MS, allowance)
    for _ in range(2):
        with pytest.raises(CorruptBatch):
            rules.stamped(small, validate_batch(small), NOW_MS, allowance)
    assert allowance.left_bytes == 0, "one that cannot be decompressed may have cost all of it"


def test_the_level_is_that_of_the_topic() -> None:
    kept = []
    plain = batch(*(b"%d" % (number * number % 9973) * 9 for number in range(2_000)))
    for level in ("1", "19"):
        rules = batch_rules({"compression.type": "zstd", "compression.zstd.level": level}, Configuration())
        assert rules is not None
        kept.append(len(rules.stamped(plain, validate_batch(plain), NOW_MS, Allowance())[0]))
    assert kept[0] > kept[1]
