"""How long a topic's records are kept, and how many: its own configurations, else the broker's options."""

from collections.abc import Mapping

from exacta.config import Configuration
from exacta.engine.upkeep import Keep, Rules
from exacta.kafka.topic_configs import RETENTION_BYTES, RETENTION_MS, only_compacts


def retention_rules(configuration: Configuration) -> Rules:
    """Return what a topic's own configurations say, where the broker's are these."""
    by_default = _keep(configuration.log_retention_ms, configuration.log_retention_bytes)

    def rules(configs: Mapping[str, str]) -> Keep:
        if not configs:
            return by_default
        if only_compacts(configs):
            return Keep()
        return _keep(
            int(configs.get(RETENTION_MS, configuration.log_retention_ms)),
            int(configs.get(RETENTION_BYTES, configuration.log_retention_bytes)),
        )

    return rules


def _keep(retention_ms: int, retention_bytes: int) -> Keep:
    return Keep(retention_ms if retention_ms >= 0 else None, retention_bytes if retention_bytes >= 0 else None)
