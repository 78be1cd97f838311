"""What a topic's configurations say about a batch that is to be appended: its size, its timestamps, its keys.

Records are not looked into (decision D5), but for two topics: one whose compression.type is another than their
producer's, where they are compressed anew, as a whole, and one that is compacted, where each must have a key, since it
would be the next compaction's to remove. A batch's timestamps are those of its header, that of its first record and the
highest one. With LogAppendTime the broker's clock replaces the highest, as Apache Kafka does it: readers then take that
for the time of all of the batch's records.
"""

from collections.abc import Mapping, Sequence

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
from exacta.core.state.internal_topics import INTERNAL_TOPICS
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.compression import CODECS, NONE
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.record_keys import record_keys
from exacta.protocol.kafka.records import BatchHeader, CorruptBatch, opened, recompressed, with_max_timestamp

_NO_TIMESTAMP = -1

MAX_DECOMPRESSED_BYTES = 64 << 20
"""What the records of one request may come to when they are decompressed: a few bytes can be made to expand without
end, and all of it happens on the event loop."""


MAX_KNOWN_RULES = 10_000
"""The rules of so many topics are kept; beyond that all are read again."""

MAX_RECORDS_READ = 500_000
"""How many records of one request may be looked at for their keys: that takes most of a second, on the event loop."""


class Budget(Struct):
    """How much of one request may still be decompressed, and looked at."""

    left_bytes: int = MAX_DECOMPRESSED_BYTES
    left_records: int = MAX_RECORDS_READ


class KeylessRecords(CorruptBatch):
    """Records of a compacted topic have no keys; `indexes` are theirs within the batch."""

    def __init__(self, indexes: Sequence[int]) -> None:
        super().__init__(f"{len(indexes)} records have no key, in a compacted topic", ErrorCode.INVALID_RECORD)
        self.indexes = indexes


class BatchRules(Struct, frozen=True, kw_only=True):
    """One topic's rules; the defaults are those of a topic that sets nothing."""

    max_bytes: int
    codec: int | None = None
    """What records are compressed by, whatever their producer did; None: as the producer did it."""
    level: int = 0
    log_append_time: bool = False
    needs_keys: bool = False
    before_max_ms: int = int(TOPIC_CONFIGS[TIMESTAMP_BEFORE_MAX_MS].default)
    after_max_ms: int = int(TOPIC_CONFIGS[TIMESTAMP_AFTER_MAX_MS].default)

    def timestamp_fault(self, header: BatchHeader, now_ms: int) -> str | None:
        """Return what is wrong with the batch's timestamps, or None."""
        if self.log_append_time:
            says_so = "timestamps are the broker's, not the producer's, and the batch says so"
            return says_so if header.log_append_time else None
        earliest_ms, latest_ms = now_ms - self.before_max_ms, now_ms + self.after_max_ms
        for timestamp_ms in (header.base_timestamp, header.max_timestamp):
            if not earliest_ms <= timestamp_ms <= latest_ms and timestamp_ms != _NO_TIMESTAMP:
                return f"timestamp {timestamp_ms} is not between {earliest_ms} and {latest_ms}"
        return None

    def stamped(self, records: Buffer, header: BatchHeader, now_ms: int, budget: Budget) -> tuple[Buffer, int]:
        """Return the batch as it is to be kept, and its highest timestamp; raises CorruptBatch, KeylessRecords."""
        records_left = budget.left_records - header.record_count
        if self.needs_keys and records_left < 0:
            reason = f"more than {MAX_RECORDS_READ} records for compacted topics in one request"
            raise CorruptBatch(reason, ErrorCode.MESSAGE_TOO_LARGE)
        codec = header.codec if self.codec is None else self.codec
        plain = _opened(records, header, budget) if self.needs_keys or codec != header.codec else b""
        if self.needs_keys:
            budget.left_records = records_left
            keys = record_keys(plain, header.record_count, header.last_offset_delta).keys
            if None in keys:
                raise KeylessRecords([index for index, key in enumerate(keys) if key is None])
        if codec != header.codec:
            records = recompressed(records, plain, codec, self.level)
            if len(records) > self.max_bytes:
                reason = (
                    f"the batch of {len(records)} bytes, as it is kept, is above the limit of {self.max_bytes} bytes"
                )
                raise CorruptBatch(reason, ErrorCode.MESSAGE_TOO_LARGE)
        if self.log_append_time:
            return with_max_timestamp(records, now_ms, log_append_time=True), now_ms
        if header.log_append_time:  # it says so of a producer's time
            return with_max_timestamp(records, header.max_timestamp, log_append_time=False), header.max_timestamp
        return records, header.max_timestamp


def _opened(records: Buffer, header: BatchHeader, budget: Budget) -> bytes:
    if header.codec == NONE:  # as large as it was sent
        return opened(records, header, len(records))
    # One that cannot be decompressed may have cost all of it.
    allowed, budget.left_bytes = budget.left_bytes, 0
    plain = opened(records, header, allowed)
    budget.left_bytes = allowed - len(plain)
    return plain


def batch_rules(configs: Mapping[str, str] | None, configuration: Configuration) -> BatchRules | None:
    """Return the rules for a topic with these configurations of its own; None where there is no such topic."""
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
    none). So an altered configuration holds for the next batch.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._default = batch_rules({}, configuration)
        self._known: dict[str, tuple[Mapping[str, str], BatchRules | None]] = {}

    def of(self, topic: str, configs: Mapping[str, str] | None) -> BatchRules | None:
        """Return the rules for the topic of this name, which has these configurations of its own; None: no topic."""
        if configs is None:
            self._known.pop(topic, None)
            return None
        if not configs or topic in INTERNAL_TOPICS:  # into those nobody writes, whatever it is (`core.append`)
            return self._default
        known = self._known.get(topic)
        if known is not None and known[0] is configs:
            return known[1]
        if len(self._known) >= MAX_KNOWN_RULES:
            self._known.clear()  # many may be of topics that are gone
        rules = batch_rules(configs, self._configuration)
        self._known[topic] = configs, rules
        return rules


def _number(configs: Mapping[str, str], name: str) -> int:
    return int(configs.get(name) or TOPIC_CONFIGS[name].default)
