"""A topic's configurations as they are in force: its own, else the broker's option for it, else the default."""

from collections.abc import Mapping

from exacta.config.dynamic import ConfigSource, DynamicConfiguration, Value
from exacta.config.options import options
from exacta.config.topic import (
    BACKLOG_QUOTA_BYTES,
    BACKLOG_QUOTA_MS,
    BACKLOG_QUOTA_POLICY,
    MAX_MESSAGE_BYTES,
    MESSAGE_TTL_MS,
    RETENTION_BYTES,
    RETENTION_MS,
    SEGMENT_MS,
    TOPIC_CONFIGS,
)
from exacta.core.values.transaction_buffer import TRANSACTION_BUFFER

OF_THE_BROKER = {
    MAX_MESSAGE_BYTES: "message.max.bytes",
    RETENTION_BYTES: "log.retention.bytes",
    RETENTION_MS: "log.retention.ms",
    SEGMENT_MS: "log.roll.ms",
    **{
        name: name
        for name in (BACKLOG_QUOTA_BYTES, BACKLOG_QUOTA_MS, BACKLOG_QUOTA_POLICY, MESSAGE_TTL_MS, TRANSACTION_BUFFER)
    },
}
"""Topic configuration -> the broker's option that counts where a topic does not set it."""


def values_of(configs: Mapping[str, str], name: str, broker: DynamicConfiguration) -> list[Value]:
    """Return the values of a configuration, the one in force first, then those that would be without it."""
    values: list[Value] = []
    if name in configs:
        values.append((name, configs[name], ConfigSource.TOPIC))
    if name in OF_THE_BROKER:
        return values + broker.values_of(options()[OF_THE_BROKER[name]])
    return [*values, (name, TOPIC_CONFIGS[name].default, ConfigSource.DEFAULT)]
