"""The start of a server, as far as it has come. The web front shows it while the journal is being read on a thread."""

import time
from typing import TYPE_CHECKING

from exacta.ports.log import Log
from exacta.server.journals import ServedJournal

if TYPE_CHECKING:
    from exacta.metrics.sources import ClusterSource


class Progress:
    """Notes what the start has made. Others may read it on any thread."""

    def __init__(self) -> None:
        self.journal: ServedJournal | None = None
        """None: it is being opened."""
        self.engine: Log | None = None
        """None: the journal is being opened, or read."""
        self.cluster: ClusterSource | None = None
        """None: this broker is alone."""
        self.recovery_seconds = 0.0
        """The time that recovery took, once the engine is there."""
        self._began = time.monotonic()

    def begins(self) -> None:
        """Note that recovery begins now."""
        self._began = time.monotonic()

    def has_recovered(self, engine: Log) -> None:
        """Note that recovery has ended."""
        self.recovery_seconds = self.seconds
        self.engine = engine

    @property
    def seconds(self) -> float:
        """The time that recovery takes so far, or took."""
        return time.monotonic() - self._began if self.engine is None else self.recovery_seconds

    @property
    def is_in_touch(self) -> bool:
        """False: this broker is one of a cluster, and has not heard from the database for a second."""
        return self.cluster is None or self.cluster.is_in_touch

    def report(self) -> dict[str, str | float]:
        """Return how far recovery is."""
        found: dict[str, str | float] = {"recovery_seconds": round(self.seconds, 3)}
        if self.cluster is not None:
            return found | {"role": self.cluster.words, "in touch": "yes" if self.cluster.is_in_touch else "no"}
        if self.journal is None:
            return found | {"doing": "opening the journal"}
        if self.engine is None:
            done, total = self.journal.replayed_bytes
            return found | {"doing": "reading the journal", "bytes_read": done, "bytes_to_read": total}
        return found
