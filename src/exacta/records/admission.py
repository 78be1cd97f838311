"""The admission of a producer's batch: it is checked, judged by its topic's configurations, and made fit to be kept.

What the header says is not believed where the broker goes by it later (decision 0015, docs/reference/numbers.md): the
records are counted, their offsets must follow one another, and the highest timestamp, by which look-ups and retention
go, is made from theirs, as Apache Kafka makes it. With LogAppendTime the broker's clock replaces it. Readers then take
that for the time of all of the batch's records.

Of the rest of the records nothing is read (decision D5), with two exceptions. If the topic's compression.type is
another than the producer's, the records are recompressed as a whole. If the topic is compacted, each record must
have a key, since the next compaction would remove a record without one.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from exacta.config.configuration import Configuration
from exacta.config.topic import (
    COMPRESSION_LEVELS,
    COMPRESSION_TYPE,
    LOG_APPEND_TIME,
    MAX_MESSAGE_BYTES,
    TIMESTAMP_AFTER_MAX_MS,
    TIMESTAMP_BEFORE_MAX_MS,
    TIMESTAMP_TYPE,
    TOPIC_CONFIGS,
    is_compacted,
)
from exacta.core.ids import ProducerEpoch, ProducerId, TransactionVersion
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.core.writers import IdempotentWriter
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.compression import CODECS, NONE
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.record_keys import record_keys
from exacta.protocol.kafka.record_times import record_times
from exacta.protocol.kafka.record_walk import lowest_and_highest
from exacta.protocol.kafka.records import (
    HEADER_SIZE,
    WRITTEN_BY_BROKERS,
    BatchHeader,
    CorruptBatch,
    opened,
    recompressed,
    validate_batch,
    with_max_timestamp,
)
from exacta.records.work import work_bytes

_NO_TIMESTAMP = -1
_LATEST_TIME = (1 << 63) - 1
"""Timestamps are i64."""

MAX_DECOMPRESSED_BYTES = 64 << 20
"""The most bytes that the records of one request may have when they are decompressed. A few bytes can be made to expand
without end."""

_INLINE_LEVEL = 9
_HIGH_LEVEL_COST = 16
"""A compression by a level above `_INLINE_LEVEL` counts as many times its bytes: zstd's highest level takes a hundred
times as long as its default."""


MAX_KNOWN_RULES = 10_000
"""The rules of this many topics are kept; beyond that all are read again."""

INLINE_RECORDS = 12_000
"""The most records of one request that are walked over on the event loop. That takes two milliseconds, or a tenth of it
where they are equally long. librdkafka puts at most 10,000 into a batch."""

MAX_RECORDS_READ = 500_000
"""The most records of one request whose keys are looked at: that takes most of a second, on a thread."""


class NeedsThread(Exception):
    """A batch is more work than the event loop may do: it is admitted on a thread."""


class Allowance(Struct):
    """The work that the batches of one request may still cost: bytes to decompress, and records to look at.

    `inline_bytes` is the part of it that the event loop may do; None: it happens on a thread. So is `inline_records`
    of the records that are walked over.
    """

    left_bytes: int = MAX_DECOMPRESSED_BYTES
    left_records: int = MAX_RECORDS_READ
    inline_bytes: int | None = None
    inline_records: int = INLINE_RECORDS

    def charge(self, size: int) -> None:
        """Count work of this many bytes; raises `NeedsThread`."""
        if self.inline_bytes is not None:
            if size > self.inline_bytes:
                raise NeedsThread
            self.inline_bytes -= size

    def charge_walk(self, record_count: int) -> None:
        """Count a walk over this many records; raises `NeedsThread`."""
        if self.inline_bytes is not None:
            if record_count > self.inline_records:
                raise NeedsThread
            self.inline_records -= record_count


class Admitted(Struct, frozen=True, kw_only=True):
    """A batch that may be appended; `records` are its bytes as they are to be kept, of Kafka's body."""

    records: Buffer
    record_count: int
    max_timestamp_ms: int
    writer: IdempotentWriter | None


class Refused(Struct, frozen=True):
    """The reason why a batch is not appended; `keyless` are the indexes of the records to blame, if any."""

    error_code: ErrorCode
    reason: str
    keyless: Sequence[int] = ()


class KeylessRecords(CorruptBatch):
    """Records of a compacted topic have no keys; `indexes` are their places in the batch."""

    def __init__(self, indexes: Sequence[int]) -> None:
        super().__init__(f"{len(indexes)} records have no key, in a compacted topic", ErrorCode.INVALID_RECORD)
        self.indexes = indexes


class BatchRules(Struct, frozen=True, kw_only=True):
    """One topic's rules; the defaults are those of a topic that sets nothing."""

    max_bytes: int
    codec: int | None = None
    """The codec by which records are compressed, whatever their producer did; None keeps the producer's."""
    level: int = 0
    log_append_time: bool = False
    needs_keys: bool = False
    before_max_ms: int = int(TOPIC_CONFIGS[TIMESTAMP_BEFORE_MAX_MS].default)
    after_max_ms: int = int(TOPIC_CONFIGS[TIMESTAMP_AFTER_MAX_MS].default)

    def times_fault(self, times_ms: Sequence[int], now_ms: int) -> str | None:
        """Return the fault in times that a producer has given, or None."""
        earliest_ms, latest_ms = now_ms - self.before_max_ms, min(now_ms + self.after_max_ms, _LATEST_TIME)
        for timestamp_ms in times_ms:
            if not earliest_ms <= timestamp_ms <= latest_ms and timestamp_ms != _NO_TIMESTAMP:
                return f"timestamp {timestamp_ms} is not between {earliest_ms} and {latest_ms}"
        return None

    def stamped(self, records: Buffer, header: BatchHeader, now_ms: int, allowance: Allowance) -> tuple[Buffer, int]:
        """Return the batch as it is to be kept, and its highest timestamp; raises CorruptBatch, KeylessRecords."""
        if self.log_append_time and header.log_append_time:
            says_so = "timestamps are the broker's, not the producer's, and the batch says so"
            raise CorruptBatch(says_so, ErrorCode.INVALID_TIMESTAMP)
        records_left = allowance.left_records - header.record_count
        if self.needs_keys and records_left < 0:
            reason = f"more than {MAX_RECORDS_READ} records for compacted topics in one request"
            raise CorruptBatch(reason, ErrorCode.MESSAGE_TOO_LARGE)
        codec = header.codec if self.codec is None else self.codec
        if self.needs_keys:
            allowance.charge(work_bytes(0, header.record_count))
        allowance.charge_walk(header.record_count)
        if header.codec != NONE or self.needs_keys or codec != NONE:
            plain: Buffer = _opened(records, header, allowance)
        else:
            plain = memoryview(records)[HEADER_SIZE : header.size]
        highest_ms = self._highest_time(plain, header, now_ms)
        if self.needs_keys:
            allowance.left_records = records_left
            keys = record_keys(bytes(plain), header.record_count, header.last_offset_delta).keys
            if None in keys:
                raise KeylessRecords([index for index, key in enumerate(keys) if key is None])
        if codec != header.codec:
            records = self._recompressed(records, plain, codec, allowance)
        if header.max_timestamp != highest_ms or self.log_append_time or header.attributes & WRITTEN_BY_BROKERS:
            records = with_max_timestamp(records, highest_ms, log_append_time=self.log_append_time)
        return records, highest_ms

    def _highest_time(self, plain: Buffer, header: BatchHeader, now_ms: int) -> int:
        """Return the highest timestamp of a batch with these records. Raises CorruptBatch."""
        deltas = lowest_and_highest(plain, header.record_count)
        if self.log_append_time:
            return now_ms
        times_ms = lowest_ms, highest_ms = [header.base_timestamp + delta_ms for delta_ms in deltas]
        if lowest_ms == _NO_TIMESTAMP < highest_ms:  # some have none, and one that has may be too old
            times_ms = [record.timestamp_ms for record in record_times(plain, header)]
        fault = self.times_fault(times_ms, now_ms)
        if fault is not None:
            raise CorruptBatch(fault, ErrorCode.INVALID_TIMESTAMP)
        return max(highest_ms, _NO_TIMESTAMP)

    def _recompressed(self, records: Buffer, plain: Buffer, codec: int, allowance: Allowance) -> bytes:
        """Return the batch in the topic's codec. Raises CorruptBatch."""
        allowance.charge(len(plain) * (_HIGH_LEVEL_COST if self.level > _INLINE_LEVEL else 1))
        kept = recompressed(records, plain, codec, self.level)
        if len(kept) > self.max_bytes:
            what = f"the batch of {len(kept)} bytes, as it is kept,"
            reason = f"{what} is above the topic's max.message.bytes, {self.max_bytes}"
            raise CorruptBatch(reason, ErrorCode.MESSAGE_TOO_LARGE)
        return kept


def admit(
    records: Buffer,
    rules: BatchRules | None,
    now_ms: int,
    allowance: Allowance,
    *,
    transactional_id: str | None,
    version: TransactionVersion,
) -> Admitted | Refused:
    """Check what a Kafka producer sent for one partition, and make of it what is to be kept.

    `rules` is None where there is no such topic. The allowance is for the whole request, and shrinks. Raises
    `NeedsThread`.
    """
    if rules is not None and len(records) > rules.max_bytes:
        reason = f"the batch of {len(records)} bytes is above the topic's max.message.bytes, {rules.max_bytes}"
        return Refused(ErrorCode.MESSAGE_TOO_LARGE, reason)
    try:
        header = validate_batch(records)
        if header.transactional and not transactional_id:
            return _without_transactional_id(transactional_id)
        if header.size < len(records):  # the beginning of another batch behind it is nothing
            records = records[: header.size]
        max_timestamp_ms = header.max_timestamp
        if rules is not None:
            records, max_timestamp_ms = rules.stamped(records, header, now_ms, allowance)
    except KeylessRecords as keyless:
        return Refused(keyless.error_code, str(keyless), keyless.indexes)
    except CorruptBatch as corrupt:
        return Refused(corrupt.error_code, str(corrupt))
    writer = None
    if header.producer_id >= 0:
        writer = IdempotentWriter(
            producer_id=ProducerId(header.producer_id),
            producer_epoch=ProducerEpoch(header.producer_epoch),
            base_sequence=header.base_sequence,
            version=version,
            transactional_id=transactional_id if header.transactional else None,
        )
    return Admitted(records=records, record_count=header.record_count, max_timestamp_ms=max_timestamp_ms, writer=writer)


def _without_transactional_id(transactional_id: str | None) -> Refused:
    absent = transactional_id is None
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if absent else ErrorCode.INVALID_REQUEST
    return Refused(code, "a transactional batch needs a transactional id")


def _opened(records: Buffer, header: BatchHeader, allowance: Allowance) -> bytes:
    allowance.charge(len(records))
    if header.codec == NONE:  # as large as it was sent
        return opened(records, header, len(records))
    # A batch that cannot be decompressed may have cost all of the allowance.
    allowed, inline_bytes = allowance.left_bytes, allowance.inline_bytes
    if inline_bytes is not None and inline_bytes < allowed:
        try:
            plain = opened(records, header, inline_bytes)
        except CorruptBatch as fault:  # or more than the loop may do: the thread finds out
            raise NeedsThread from fault
    else:
        allowance.left_bytes = 0
        plain = opened(records, header, allowed)
    allowance.left_bytes = allowed - len(plain)
    allowance.charge(len(plain))
    return plain


def batch_rules(configs: Mapping[str, str] | None, configuration: Configuration) -> BatchRules | None:
    """Return the rules for a topic with these configurations of its own, or None if there is no such topic."""
    if configs is None:
        return None
    if not configs:
        return BatchRules(max_bytes=configuration.message_max_bytes)
    codec = CODECS.get(configs.get(COMPRESSION_TYPE, ""))
    return BatchRules(
        codec=codec,
        level=_number(configs, COMPRESSION_LEVELS[codec]) if codec in COMPRESSION_LEVELS else 0,
        max_bytes=int(configs.get(MAX_MESSAGE_BYTES, configuration.message_max_bytes)),
        log_append_time=configs.get(TIMESTAMP_TYPE) == LOG_APPEND_TIME,
        needs_keys=is_compacted(configs),
        before_max_ms=_number(configs, TIMESTAMP_BEFORE_MAX_MS),
        after_max_ms=_number(configs, TIMESTAMP_AFTER_MAX_MS),
    )


class KnownRules:
    """Keeps the rules of topics, so that a topic's configurations are read once, and not by every Produce.

    A topic's configurations are another object whenever they are altered (`core.apply` replaces them, and changes
    none), and the broker's is another one whenever an option of it is. So an altered one holds for the next batch.
    """

    def __init__(self, now: Callable[[], Configuration]) -> None:
        """`now` returns the broker's configuration at that moment."""
        self._now = now
        self._configuration = now()
        self._default = batch_rules({}, self._configuration)
        self._known: dict[str, tuple[Mapping[str, str], BatchRules | None]] = {}

    def of(self, topic: str, configs: Mapping[str, str] | None) -> BatchRules | None:
        """Return the rules for the topic of this name, which has these configurations of its own; None: no topic."""
        if configs is None:
            self._known.pop(topic, None)
            return None
        configuration = self._now()
        if configuration is not self._configuration:
            self._configuration, self._default = configuration, batch_rules({}, configuration)
            self._known.clear()
        if not configs or topic in INTERNAL_TOPICS:  # into those nobody writes, whatever it is (`core.append`)
            return self._default
        known = self._known.get(topic)
        if known is not None and known[0] is configs:
            return known[1]
        if len(self._known) >= MAX_KNOWN_RULES:
            self._known.clear()  # many may be of topics that are gone
        rules = batch_rules(configs, configuration)
        self._known[topic] = configs, rules
        return rules


def _number(configs: Mapping[str, str], name: str) -> int:
    return int(configs.get(name) or TOPIC_CONFIGS[name].default)
