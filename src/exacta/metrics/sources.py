"""All that metrics are read from, and the bounds on how much one scrape shows and counts."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar, Protocol

from exacta.config.configuration import Configuration
from exacta.front.broker import Broker
from exacta.front.meter import Meter
from exacta.histogram import Histogram
from exacta.metrics.busiest import Busiest
from exacta.metrics.loop_lag import LoopLag
from exacta.metrics.traffic import OF_TOPICS
from exacta.ports.log import Log
from exacta.release import release

MOST_COUNTED = 10_000
"""The lag of this many partitions of groups and subscriptions is counted again in one scrape. Each may take 0.05 ms."""


class JournalSource(Protocol):
    """The journal, as its metrics see it."""

    syncs: Histogram
    """The times that syncs took."""

    @property
    def reserve_bytes(self) -> int:
        """The bytes that the reserve of the disk holds."""


class ClusterSource(Protocol):
    """The cluster, as its broker's metrics see it."""

    leads_taken: int

    @property
    def leads(self) -> bool:
        """True if this broker leads."""

    @property
    def is_in_touch(self) -> bool:
        """True if this broker has lately heard from the database."""

    @property
    def words(self) -> str:
        """The role in a word."""

    @property
    def brokers(self) -> int:
        """The number of brokers that live."""

    @property
    def lags(self) -> Mapping[int, int]:
        """The bytes by which each other broker is behind this one."""

    @property
    def tail_bytes(self) -> int:
        """The bytes of the log that are not in objects yet."""

    @property
    def tail_seconds(self) -> float:
        """The age of the oldest group that is not in objects yet."""


class StartSource(Protocol):
    """The start of the server."""

    @property
    def journal(self) -> JournalSource | None:
        """The journal, once it is open."""

    @property
    def engine(self) -> Log | None:
        """The engine, once the journal has been read."""

    @property
    def cluster(self) -> ClusterSource | None:
        """The cluster; None: the broker is alone."""

    @property
    def seconds(self) -> float:
        """The time that recovery takes so far, or took."""


class AdmissionSource(Protocol):
    """The count of connections."""

    admitted: int
    refused: int


class ConnectionSource(Protocol):
    """One connection."""

    front: ClassVar[str]


class Sources:
    """The parts of one server that can be measured. `broker` is there once it has recovered."""

    def __init__(
        self,
        configuration: Configuration,
        data: Path,
        progress: StartSource,
        admission: AdmissionSource,
        connections: Collection[ConnectionSource],
    ) -> None:
        self.configuration = configuration
        self.data = data
        self.progress = progress
        self.admission = admission
        self.connections = connections
        self.version = release()
        self.meter = Meter()
        self.loop_lag = LoopLag()
        self.broker: Broker | None = None
        self.topics = Busiest(len(OF_TOPICS), configuration.web_metrics_max_series)
