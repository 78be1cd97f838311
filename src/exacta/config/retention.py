"""The retention of a topic by time, size and key, from its own configurations, else from the broker's."""

from collections.abc import Mapping

from exacta.config.configuration import Configuration
from exacta.config.topic import (
    DELETE_RETENTION_MS,
    MAX_COMPACTION_LAG_MS,
    MIN_CLEANABLE_DIRTY_RATIO,
    MIN_COMPACTION_LAG_MS,
    RETENTION_BYTES,
    RETENTION_MS,
    SEGMENT_BYTES,
    SEGMENT_MS,
    TOPIC_CONFIGS,
    is_compacted,
    only_compacts,
)
from exacta.engine.compaction_schedule import CompactionPolicy
from exacta.engine.upkeep import Retention, RetentionRules


def retention_rules(configuration: Configuration) -> RetentionRules:
    """Return what a topic's own configurations say, where the broker's are these."""
    by_default = _retention(configuration.log_retention_ms, configuration.log_retention_bytes)

    def rules(configs: Mapping[str, str]) -> Retention:
        if not configs:
            return by_default
        compacting = _compacting(configs) if is_compacted(configs) else None
        if only_compacts(configs):
            return Retention(compacting=compacting)
        return _retention(
            int(configs.get(RETENTION_MS, configuration.log_retention_ms)),
            int(configs.get(RETENTION_BYTES, configuration.log_retention_bytes)),
            compacting,
        )

    return rules


def _retention(retention_ms: int, retention_bytes: int, compacting: CompactionPolicy | None = None) -> Retention:
    return Retention(
        retention_ms if retention_ms >= 0 else None, retention_bytes if retention_bytes >= 0 else None, compacting
    )


def _compacting(configs: Mapping[str, str]) -> CompactionPolicy:
    def number(name: str) -> int:
        return int(_value(configs, name))

    return CompactionPolicy(
        min_dirty_ratio=float(_value(configs, MIN_CLEANABLE_DIRTY_RATIO)),
        min_lag_ms=number(MIN_COMPACTION_LAG_MS),
        max_lag_ms=number(MAX_COMPACTION_LAG_MS),
        delete_retention_ms=number(DELETE_RETENTION_MS),
        segment_ms=number(SEGMENT_MS),
        segment_bytes=number(SEGMENT_BYTES),
    )


def _value(configs: Mapping[str, str], name: str) -> str:
    return configs.get(name, TOPIC_CONFIGS[name].default)
