"""The calls that a program makes within a transaction over log and database."""

from collections.abc import Mapping, Sequence
from typing import Any

from exacta.databases.database import Database
from exacta.databases.errors import TwoPhaseError
from exacta.databases.log import Bytes, Headers, Log


class Transaction:
    """A transaction over a log and a database; it ends with its `with`."""

    def __init__(self, log: Log, database: Database) -> None:
        self._log = log
        self._database = database
        self.is_over = False

    @property
    def connection(self) -> Any:
        """Return the connection of the database's driver, whose transaction is this one. Do not commit on it."""
        self._refuse_if_over()
        return self._database.connection

    def execute(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
        """Execute a statement in the database, as the driver's own `execute`; return the driver's cursor."""
        return self.connection.execute(statement, parameters)

    def produce(
        self,
        topic: str,
        value: Bytes,
        *,
        key: Bytes = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Write a message into a topic. Its partition is chosen by the key, as the Java client does.

        Messages without a key go to one partition of the topic, which each transaction draws again. Strings are
        written as UTF-8. The time is now, unless `timestamp_ms` says another one, in ms since 1970. Raises
        `TwoPhaseError`, and TypeError for what cannot be a message.
        """
        self._refuse_if_over()
        self._log.produce(topic, value, key, headers, partition, timestamp_ms)

    def send_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit a consumer group's offsets with the transaction: by topic and partition, the offset to go on at.

        The broker does not look at the group's members, because the transactional id fences. So one transactional id
        must belong to the same partitions for ever. Raises `TwoPhaseError`.
        """
        self._refuse_if_over()
        self._log.send_offsets(group, offsets)

    def _refuse_if_over(self) -> None:
        if self.is_over:
            raise TwoPhaseError("the transaction is over")
