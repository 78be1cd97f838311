"""Topic configurations: which exist, their types and defaults, which values can be promised.

Names are Kafka's, but for those that begin with `pulsar.`, which are for Pulsar's subscriptions, and for
`transaction.buffer` (`core.log.staging`). A name that Kafka has is accepted and shown, so that tools and frameworks can
create their topics; where a value would promise what is not done here (more replicas, a second storage), it is refused.
What those of them mean that Produce goes by, and how timestamps are judged, stands in `records/admission.py`; what is
kept, in `retention.py`; how requests change values in `topic_config_changes.py`.
"""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from msgspec import Struct

from exacta.config.ranges import INT_MAX, LONG_MAX, LONG_MIN
from exacta.core.values.transaction_buffer import MARKER, SIDECAR, TRANSACTION_BUFFER
from exacta.protocol.kafka.compression import CODECS, GZIP, LZ4, ZSTD

CLEANUP_POLICY: Final = "cleanup.policy"
COMPRESSION_TYPE: Final = "compression.type"
COMPRESSION_LEVELS: Final = {
    GZIP: "compression.gzip.level",
    LZ4: "compression.lz4.level",
    ZSTD: "compression.zstd.level",
}
"""The configuration of a codec's level, by codec; Snappy has none."""
MAX_MESSAGE_BYTES: Final = "max.message.bytes"
TIMESTAMP_TYPE: Final = "message.timestamp.type"
TIMESTAMP_BEFORE_MAX_MS: Final = "message.timestamp.before.max.ms"
TIMESTAMP_AFTER_MAX_MS: Final = "message.timestamp.after.max.ms"
LOG_APPEND_TIME: Final = "LogAppendTime"
RETENTION_BYTES: Final = "retention.bytes"
RETENTION_MS: Final = "retention.ms"
DELETE: Final = "delete"
COMPACT: Final = "compact"
DELETE_RETENTION_MS: Final = "delete.retention.ms"
MIN_CLEANABLE_DIRTY_RATIO: Final = "min.cleanable.dirty.ratio"
MIN_COMPACTION_LAG_MS: Final = "min.compaction.lag.ms"
MAX_COMPACTION_LAG_MS: Final = "max.compaction.lag.ms"
MESSAGE_TTL_MS: Final = "pulsar.message.ttl.ms"
BACKLOG_QUOTA_BYTES: Final = "pulsar.backlog.quota.bytes"
BACKLOG_QUOTA_MS: Final = "pulsar.backlog.quota.ms"
BACKLOG_QUOTA_POLICY: Final = "pulsar.backlog.quota.policy"
SEGMENT_BYTES: Final = "segment.bytes"
SEGMENT_MS: Final = "segment.ms"


class ConfigType(IntEnum):
    """Kafka's numbers for the types of configurations."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class UnfitValue(ValueError):
    """A configuration that a topic cannot have; the message is meant for the client."""


class TopicConfig(Struct, frozen=True, kw_only=True):
    """One configuration. `choices` are the values that can be had; bounds are inclusive, `also` lies outside them."""

    type: ConfigType
    default: str
    lowest: float = 0
    highest: float = LONG_MAX
    also: int | None = None
    choices: tuple[str, ...] = ()
    description: str


def _long(default: int, description: str, lowest: int = 0) -> TopicConfig:
    return TopicConfig(type=ConfigType.LONG, default=str(default), lowest=lowest, description=description)


def _int(
    default: int, description: str, lowest: int = 0, highest: int = INT_MAX, also: int | None = None
) -> TopicConfig:
    return TopicConfig(
        type=ConfigType.INT, default=str(default), lowest=lowest, highest=highest, also=also, description=description
    )


def _choice(default: str, description: str, *others: str, type: ConfigType = ConfigType.STRING) -> TopicConfig:
    return TopicConfig(type=type, default=default, choices=(default, *others), description=description)


def _off(description: str) -> TopicConfig:
    return _choice("false", description, type=ConfigType.BOOLEAN)


_ONE_STORAGE: Final = "There is one storage: remote.storage.enable can only be false."
_LEVEL: Final = "The level of batches that compression.type recompresses; others stay as their producer made them."
_NO_REPLICATION: Final = "There is nothing to replicate, hence to throttle."

TOPIC_CONFIGS: dict[str, TopicConfig] = {
    CLEANUP_POLICY: _choice(DELETE, "Whether old records go by age or by key.", COMPACT, type=ConfigType.LIST),
    COMPRESSION_LEVELS[GZIP]: _int(-1, _LEVEL, lowest=1, highest=9, also=-1),
    COMPRESSION_LEVELS[LZ4]: _int(9, _LEVEL, lowest=1, highest=17),
    COMPRESSION_TYPE: _choice(
        "producer",
        "How batches are kept; producer: as theirs made them. Others are recompressed, by the broker's one thread.",
        *CODECS,
    ),
    COMPRESSION_LEVELS[ZSTD]: _int(3, _LEVEL, lowest=-131_072, highest=22),
    DELETE_RETENTION_MS: _long(86_400_000, "How long a compacted topic shows that a key was deleted."),
    "errors.deadletterqueue.group.enable": _off("There are no share groups."),
    "file.delete.delay.ms": _long(60_000, "How long files of removed records stay."),
    "flush.messages": _long(1, "What is acknowledged or committed is on disk, whatever is set here.", lowest=1),
    "flush.ms": _long(0, "What is acknowledged or committed is on disk, whatever is set here."),
    "follower.replication.throttled.replicas": _choice("", _NO_REPLICATION, type=ConfigType.LIST),
    "index.interval.bytes": _int(4096, "Every batch is indexed, whatever is set here."),
    "leader.replication.throttled.replicas": _choice("", _NO_REPLICATION, type=ConfigType.LIST),
    "local.retention.bytes": _long(-2, _ONE_STORAGE, lowest=-2),
    "local.retention.ms": _long(-2, _ONE_STORAGE, lowest=-2),
    MAX_COMPACTION_LAG_MS: _long(LONG_MAX, "How long a record may wait for compaction.", lowest=1),
    "max.decompressed.message.bytes": _int(
        2_147_483_639,
        "Batches are decompressed up to 64 MiB of one request, whatever is set here.",
        lowest=1,
        highest=2_147_483_639,
    ),
    MAX_MESSAGE_BYTES: _int(0, "Largest record batch; the default is the broker's message.max.bytes."),
    TIMESTAMP_AFTER_MAX_MS: _long(3_600_000, "How far ahead of the broker's clock a record's timestamp may be."),
    TIMESTAMP_BEFORE_MAX_MS: _long(LONG_MAX, "How far behind the broker's clock a record's timestamp may be."),
    TIMESTAMP_TYPE: _choice("CreateTime", "Whether timestamps are the producers' or the broker's.", LOG_APPEND_TIME),
    MIN_CLEANABLE_DIRTY_RATIO: TopicConfig(
        type=ConfigType.DOUBLE, default="0.5", highest=1, description="When compaction is worth its cost."
    ),
    MIN_COMPACTION_LAG_MS: _long(0, "How long a record is safe from compaction."),
    "min.insync.replicas": _int(1, "There is one replica.", lowest=1, highest=1),
    "preallocate": _off("Files grow as they are written."),
    BACKLOG_QUOTA_BYTES: _long(
        10 << 30, "Bytes of a partition that are kept for Pulsar's subscriptions alone; -1: without a bound.", lowest=-1
    ),
    BACKLOG_QUOTA_MS: _long(
        -1, "Age of what is kept for Pulsar's subscriptions alone; -1: without a bound.", lowest=-1
    ),
    BACKLOG_QUOTA_POLICY: _choice(
        "producer_request_hold",
        "What happens beyond the backlog quota: nothing is appended, or the oldest messages are acknowledged.",
        "producer_exception",
        "consumer_backlog_eviction",
    ),
    MESSAGE_TTL_MS: _long(0, "How long a message waits for Pulsar's subscriptions to acknowledge it; 0: for ever."),
    "remote.copy.lag.bytes": _long(-1, _ONE_STORAGE, lowest=-1),
    "remote.copy.lag.ms": _long(0, _ONE_STORAGE, lowest=-1),
    "remote.log.copy.disable": _choice("false", _ONE_STORAGE, "true", type=ConfigType.BOOLEAN),
    "remote.log.delete.on.disable": _choice("false", _ONE_STORAGE, "true", type=ConfigType.BOOLEAN),
    "remote.storage.enable": _off("There is one storage."),
    RETENTION_BYTES: _long(
        -1,
        "Bytes of a partition that are kept at least; what is more goes, oldest first. Below 0: all.",
        lowest=LONG_MIN,
    ),
    RETENTION_MS: _long(604_800_000, "How long records are kept; -1: for ever.", lowest=-1),
    SEGMENT_BYTES: _int(
        1 << 30,
        "So much of a compacted partition ends a file; else log.segment.bytes of the broker does.",
        lowest=1 << 20,
    ),
    "segment.index.bytes": _int(10 << 20, "Indexes are as large as they must be, whatever is set here.", lowest=4),
    "segment.jitter.ms": _long(0, "Files hold many topics: log.segment.bytes of the broker decides."),
    SEGMENT_MS: _long(
        604_800_000,
        "So long a record of a compacted topic waits for its file to end, to be compacted then. Other files hold many "
        "topics: log.segment.bytes of the broker ends them.",
        lowest=1,
    ),
    TRANSACTION_BUFFER: _choice(
        MARKER,
        "Where a transaction's records lie until it ends: among the others, or aside, to enter when it commits.",
        SIDECAR,
    ),
    "unclean.leader.election.enable": _off("There is one replica."),
}

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


def checked(name: str, value: str) -> str:
    """Return the value as it is kept and shown. Raises UnfitValue."""
    config = TOPIC_CONFIGS.get(name)
    if config is None:
        raise UnfitValue(f"Unknown topic config name: {name}")
    value = value.strip()
    if config.type is ConfigType.LIST:
        parts = as_list(value)
        _require_choice(name, config, parts, value)
        return ",".join(parts)
    if config.type is ConfigType.BOOLEAN:
        value = value.lower()
    if config.choices:
        _require_choice(name, config, [value], value)
        return value
    return str(_number(name, config, value))


def require_consistent(configs: dict[str, str]) -> None:
    """Check what settings say together. Raises UnfitValue."""
    least, most = (
        int(configs.get(name, TOPIC_CONFIGS[name].default)) for name in (MIN_COMPACTION_LAG_MS, MAX_COMPACTION_LAG_MS)
    )
    if least > most:
        raise UnfitValue(f"{MIN_COMPACTION_LAG_MS} ({least}) must not be above {MAX_COMPACTION_LAG_MS} ({most})")


def as_list(value: str) -> list[str]:
    """Split a list's value, each element once; the empty string has none."""
    return list(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


def _require_choice(name: str, config: TopicConfig, wanted: list[str], value: str) -> None:
    if not set(wanted) <= set(config.choices):
        choices = " or ".join(choice or "empty" for choice in config.choices)
        raise UnfitValue(f"{name} can be {choices} here, not {value}")


def _number(name: str, config: TopicConfig, value: str) -> int | float:
    number: int | float
    try:
        if config.type is not ConfigType.DOUBLE and not _WHOLE_NUMBER.fullmatch(value):
            raise ValueError
        number = float(value) if config.type is ConfigType.DOUBLE else int(value)
    except ValueError:
        raise UnfitValue(f"Invalid value {value} for {name}: it must be a number") from None
    if number != config.also and not config.lowest <= number <= config.highest:
        raise UnfitValue(f"{name} must be between {config.lowest} and {config.highest}, not {value}")
    return number


def only_compacts(configs: Mapping[str, str]) -> bool:
    """Say whether a topic with these configurations of its own keeps every key's last record, however old it is."""
    policy = as_list(configs.get(CLEANUP_POLICY, DELETE))
    return COMPACT in policy and DELETE not in policy


def is_compacted(configs: Mapping[str, str]) -> bool:
    """Say whether records of a topic with these configurations of its own go by key, whether or not also by age."""
    return COMPACT in as_list(configs.get(CLEANUP_POLICY, DELETE))
