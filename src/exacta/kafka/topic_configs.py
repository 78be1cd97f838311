"""Topic configurations: which exist, their types and defaults, which values can be promised.

Names are Kafka's. A name that Kafka has is accepted and shown, so that tools and frameworks can create their topics;
where a value would promise what is not done here (another compression than the producer's, broker timestamps, more
replicas), it is refused. Settings of retention and cleaning are kept for when there is a cleaner; until then nothing is
ever deleted, which the defaults shown here say.
"""

from enum import IntEnum
from typing import Final

from msgspec import Struct

from exacta.kafka.broker import BrokerContext

_LONG_MAX: Final = 2**63 - 1
_INT_MAX: Final = 2**31 - 1
MAX_MESSAGE_BYTES: Final = "max.message.bytes"


class ConfigType(IntEnum):
    """Kafka's numbers for the types of configurations."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class TopicConfig(Struct, frozen=True, kw_only=True):
    """One configuration. `choices` are the values that can be had; bounds are inclusive."""

    type: ConfigType
    default: str
    lowest: float = 0
    highest: float = _LONG_MAX
    choices: tuple[str, ...] = ()
    description: str


def _long(default: int, description: str, lowest: int = 0) -> TopicConfig:
    return TopicConfig(type=ConfigType.LONG, default=str(default), lowest=lowest, description=description)


def _int(default: int, description: str, lowest: int = 0, highest: int = _INT_MAX) -> TopicConfig:
    return TopicConfig(
        type=ConfigType.INT, default=str(default), lowest=lowest, highest=highest, description=description
    )


def _choice(default: str, description: str, *others: str, type: ConfigType = ConfigType.STRING) -> TopicConfig:
    return TopicConfig(type=type, default=default, choices=(default, *others), description=description)


TOPIC_CONFIGS: dict[str, TopicConfig] = {
    "cleanup.policy": _choice("delete", "Whether old records go by age or by key.", "compact", type=ConfigType.LIST),
    "compression.type": _choice("producer", "Batches are kept as their producer made them."),
    "delete.retention.ms": _long(86_400_000, "How long a compacted topic shows that a key was deleted."),
    "file.delete.delay.ms": _long(60_000, "How long files of removed records stay."),
    "flush.messages": _long(1, "Every acknowledged record is on disk, whatever is set here.", lowest=1),
    "flush.ms": _long(0, "Every acknowledged record is on disk, whatever is set here."),
    "index.interval.bytes": _int(4096, "Every batch is indexed, whatever is set here."),
    "max.compaction.lag.ms": _long(_LONG_MAX, "How long a record may wait for compaction.", lowest=1),
    MAX_MESSAGE_BYTES: _int(0, "Largest record batch; the default is the broker's message.max.bytes."),
    "message.timestamp.after.max.ms": _long(_LONG_MAX, "Timestamps are not limited, whatever is set here."),
    "message.timestamp.before.max.ms": _long(_LONG_MAX, "Timestamps are not limited, whatever is set here."),
    "message.timestamp.type": _choice("CreateTime", "Timestamps are the producers'."),
    "min.cleanable.dirty.ratio": TopicConfig(
        type=ConfigType.DOUBLE, default="0.5", highest=1, description="When compaction is worth its cost."
    ),
    "min.compaction.lag.ms": _long(0, "How long a record is safe from compaction."),
    "min.insync.replicas": _int(1, "There is one replica.", lowest=1, highest=1),
    "preallocate": _choice("false", "Files grow as they are written.", type=ConfigType.BOOLEAN),
    "retention.bytes": _long(-1, "Most bytes of a partition to keep; -1: all.", lowest=-1),
    "retention.ms": _long(-1, "How long to keep records; -1: for ever.", lowest=-1),
    "segment.bytes": _int(1 << 30, "Files hold many topics: log.segment.bytes of the broker decides.", lowest=14),
    "segment.index.bytes": _int(10 << 20, "Indexes are as large as they must be, whatever is set here.", lowest=4),
    "segment.jitter.ms": _long(0, "Files hold many topics: log.segment.bytes of the broker decides."),
    "segment.ms": _long(604_800_000, "Files hold many topics: log.segment.bytes of the broker decides.", lowest=1),
    "unclean.leader.election.enable": _choice("false", "There is one replica.", type=ConfigType.BOOLEAN),
}


def fault(name: str, value: str | None) -> str | None:
    """Return why a topic cannot have this configuration, or None."""
    config = TOPIC_CONFIGS.get(name)
    if config is None:
        return f"Unknown topic config name: {name}"
    if value is None:
        return f"{name} needs a value"
    if config.choices:
        wanted = [part.strip() for part in value.split(",")] if config.type is ConfigType.LIST else [value.strip()]
        wrong = [each for each in wanted if each not in config.choices]
        return f"{name} can be {' or '.join(config.choices)} here, not {value}" if wrong else None
    try:
        number = float(value) if config.type is ConfigType.DOUBLE else int(value)
    except ValueError:
        return f"{name} must be a number, not {value}"
    if not config.lowest <= number <= config.highest:
        return f"{name} must be between {config.lowest} and {config.highest}, not {value}"
    return None


def default_of(broker: BrokerContext, name: str) -> str:
    """Return the value of a configuration that the topic's creator did not set."""
    if name == MAX_MESSAGE_BYTES:
        return str(broker.configuration.message_max_bytes)
    return TOPIC_CONFIGS[name].default


def max_message_bytes(broker: BrokerContext, topic: str) -> int:
    """Return the size limit of a batch for this topic."""
    value = broker.topic_config(topic, MAX_MESSAGE_BYTES)
    return broker.configuration.message_max_bytes if value is None else int(value)
