"""The belongings of a broker of a cluster in its present role: all of them are in memory, and go with a failure."""

from exacta.engine.engine import Engine
from exacta.engine.replica import Replica
from exacta.ports.following import Leader, LedJournal, SharedReader
from exacta.server.cluster.opening import Opened


class Belongings:
    """The follower and its replica, then the journal and its engine."""

    def __init__(self) -> None:
        self.opened: Opened | None = None
        self.replica: Replica | None = None
        self.journal: LedJournal | None = None
        self.engine: Engine | None = None

    @property
    def log(self) -> Engine | Replica | None:
        """The log as the role has it."""
        return self.engine or self.replica

    def leader(self, node_id: int) -> Leader | None:
        """Return who leads, as the broker with this node id knows it."""
        if self.journal is not None:
            return Leader(node_id, self.journal.epoch)
        return None if self.opened is None else self.opened.follower.leader

    @property
    def position(self) -> int:
        """Up to where the log is known; 0: nothing is."""
        return 0 if self._reader is None else self._reader.position

    @property
    def tail_from(self) -> int:
        """See `SharedReader`; 0: nothing is known."""
        return 0 if self._reader is None else self._reader.tail_from

    @property
    def catalog(self) -> int:
        """See `SharedReader`."""
        return 0 if self._reader is None else self._reader.catalog

    @property
    def _reader(self) -> SharedReader | None:
        return self.journal or (None if self.opened is None else self.opened.follower)

    def drop(self) -> None:
        """Drop all, and end the sessions with the database: nothing is flushed."""
        for log in (self.engine, self.replica):
            if log is not None and log.failed is None:
                log.abandon()
        if self.journal is not None:
            self.journal.close()  # and with it the follower that has handed it out
        elif self.opened is not None:
            self.opened.follower.close()
        self.opened = self.replica = self.journal = self.engine = None
