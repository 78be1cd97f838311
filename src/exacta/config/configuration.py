"""The broker's configuration: the options of all rooms in one value.

The rooms are frozen dataclasses, since `msgspec.Struct`s cannot have several bases.
"""

from dataclasses import asdict, dataclass

from exacta.config.cluster import ClusterOptions
from exacta.config.doors import DoorOptions
from exacta.config.groups import GroupOptions
from exacta.config.kafka import KafkaOptions
from exacta.config.log import LogOptions
from exacta.config.logins import LoginOptions
from exacta.config.network import NetworkOptions
from exacta.config.pulsar import PulsarOptions
from exacta.config.pulsar_logins import PulsarLoginOptions
from exacta.config.security import SecurityOptions
from exacta.config.tls import TlsOptions
from exacta.config.transactions import TransactionOptions
from exacta.config.web import WebOptions
from exacta.core.values.limits import Limits


@dataclass(frozen=True, kw_only=True)
class Configuration(
    GroupOptions,
    TransactionOptions,
    LogOptions,
    NetworkOptions,
    DoorOptions,
    TlsOptions,
    PulsarOptions,
    WebOptions,
    SecurityOptions,
    LoginOptions,
    PulsarLoginOptions,
    KafkaOptions,
    ClusterOptions,
):
    """Every option with its default. `exacta serve --help` lists them from the last base to the first."""

    def limits(self) -> Limits:
        """Return the limits of the core: an option of a limit's name sets it."""
        given = {name: value for name, value in asdict(self).items() if name in Limits.__struct_fields__}
        return Limits(
            **given
            | {
                "transactional_id_expiry_interval_ms": (
                    self.transaction_remove_expired_transaction_cleanup_interval_ms
                ),
                "producer_id_expiry_interval_ms": self.producer_id_expiration_check_interval_ms,
                "offsets_retention_ms": self.offsets_retention_minutes * 60_000,
                "group_expiry_interval_ms": self.offsets_retention_check_interval_ms,
                "ended_handle_retention_ms": self.pulsar_transaction_outcome_retention_ms,
                "flush_interval_ms": self.log_flush_interval_ms,
                "max_ended_handles": self.pulsar_transaction_outcome_retention_count,
                "group_consumer_assignors": tuple(self.group_consumer_assignors.split(",")),
            }
        )
