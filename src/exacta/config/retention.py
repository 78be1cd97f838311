"""The retention of a topic by time, size and key, and the bounds of its backlogs.

They are the topic's own configurations, else the broker's options.
"""

from collections.abc import Callable, Mapping

from exacta.config.configuration import Configuration
from exacta.config.topic import (
    BACKLOG_QUOTA_BYTES,
    BACKLOG_QUOTA_MS,
    BACKLOG_QUOTA_POLICY,
    DELETE_RETENTION_MS,
    MAX_COMPACTION_LAG_MS,
    MESSAGE_TTL_MS,
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
from exacta.engine.backlog import BacklogPolicy, QuotaAction
from exacta.engine.compaction_schedule import CompactionPolicy
from exacta.engine.upkeep import Retention, RetentionRules


def retention_rules(now: Callable[[], Configuration]) -> RetentionRules:
    """Return what a topic's own configurations say, where the broker's are what `now` returns at that moment."""
    known, by_default = now(), _by_default(now())

    def rules(configs: Mapping[str, str]) -> Retention:
        nonlocal known, by_default
        configuration = now()
        if configuration is not known:
            known, by_default = configuration, _by_default(configuration)
        if not configs:
            return by_default
        compacting = _compacting(configs, configuration) if is_compacted(configs) else None
        backlog = _backlog(configs, configuration)
        if only_compacts(configs):
            return Retention(compacting=compacting, backlog=backlog)
        return _retention(
            int(configs.get(RETENTION_MS, configuration.log_retention_ms)),
            int(configs.get(RETENTION_BYTES, configuration.log_retention_bytes)),
            compacting,
            backlog,
        )

    return rules


def _by_default(configuration: Configuration) -> Retention:
    backlog = _backlog({}, configuration)
    return _retention(configuration.log_retention_ms, configuration.log_retention_bytes, None, backlog)


def _retention(
    retention_ms: int, retention_bytes: int, compacting: CompactionPolicy | None, backlog: BacklogPolicy
) -> Retention:
    return Retention(_bound(retention_ms), _bound(retention_bytes), compacting, backlog)


def _bound(value: int) -> int | None:
    return value if value >= 0 else None


def _backlog(configs: Mapping[str, str], configuration: Configuration) -> BacklogPolicy:
    ttl_ms = int(configs.get(MESSAGE_TTL_MS, configuration.pulsar_message_ttl_ms))
    action = configs.get(BACKLOG_QUOTA_POLICY, configuration.pulsar_backlog_quota_policy)
    return BacklogPolicy(
        ttl_ms=ttl_ms or None,
        quota_bytes=_bound(int(configs.get(BACKLOG_QUOTA_BYTES, configuration.pulsar_backlog_quota_bytes))),
        quota_ms=_bound(int(configs.get(BACKLOG_QUOTA_MS, configuration.pulsar_backlog_quota_ms))),
        action=QuotaAction[action.upper()],
    )


def _compacting(configs: Mapping[str, str], configuration: Configuration) -> CompactionPolicy:
    def number(name: str) -> int:
        return int(_value(configs, name))

    return CompactionPolicy(
        min_dirty_ratio=float(_value(configs, MIN_CLEANABLE_DIRTY_RATIO)),
        min_lag_ms=number(MIN_COMPACTION_LAG_MS),
        max_lag_ms=number(MAX_COMPACTION_LAG_MS),
        delete_retention_ms=number(DELETE_RETENTION_MS),
        segment_ms=int(configs.get(SEGMENT_MS, configuration.log_roll_ms)),
        segment_bytes=number(SEGMENT_BYTES),
    )


def _value(configs: Mapping[str, str], name: str) -> str:
    return configs.get(name, TOPIC_CONFIGS[name].default)
