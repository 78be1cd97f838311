"""SQLite, by the driver of Python's standard library.

A transaction takes the write lock when it begins (`BEGIN IMMEDIATE`). Otherwise one that reads first could not be
continued by a write. Other writers wait meanwhile, also for the messages to be written.

`PRAGMA synchronous=EXTRA` makes a commit durable. By less than that a stop of the machine can undo it, in a database
without a write-ahead log even by FULL: nothing syncs the directory in which the journal was deleted.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exacta.databases.database import Database
from exacta.databases.errors import TwoPhaseError, one_line

_EXTRA = 3
_MEMORY = ":memory:"
_MAIN = 0
"""The number of the database that was opened. Names are what the user's `text_factory` makes of text."""


class Sqlite(Database):
    """A database in a file: its path, or a connection of `sqlite3` that no transaction is open on."""

    placeholder = "?"
    errors = (sqlite3.Error,)

    def __init__(self, database: str | Path | sqlite3.Connection) -> None:
        self.is_given = isinstance(database, sqlite3.Connection)
        self._path: Path | None = None
        self._connection: sqlite3.Connection | None = None
        self._has_begun = False
        """It is true if a transaction that is open may be ours, and not one of the user's on a connection of theirs."""
        if isinstance(database, sqlite3.Connection):
            self._connection = database
            self.name = "SQLite"
        else:
            # The program may go to another folder before the connection is made anew.
            self._path = Path(database) if str(database) == _MEMORY else Path(database).absolute()
            self.name = str(database)

    @property
    def connection(self) -> sqlite3.Connection:
        """Return the driver's connection."""
        if self._connection is None:
            raise TwoPhaseError(f"the database '{self.name}' is not open")
        return self._connection

    def open(self, timeout_ms: float) -> None:
        """Connect, unless there is a connection, and make sure that commits are durable."""
        if self._connection is None:
            assert self._path is not None
            try:
                self._connection = sqlite3.connect(self._path, timeout=timeout_ms / 1000, isolation_level=None)
            except sqlite3.Error as error:
                raise TwoPhaseError(f"the database '{self.name}' cannot be opened: {one_line(error)}") from error
        self._refuse_an_open_transaction()
        if not any(number == _MAIN and file for number, _, file in self.ask("PRAGMA database_list")):
            raise TwoPhaseError(f"the database '{self.name}' is in memory: a decision must outlive the process")
        self.ask(f"PRAGMA synchronous={_EXTRA}")

    def begin(self) -> None:
        """Begin a transaction, and take the write lock."""
        self._refuse_an_open_transaction()
        self._has_begun = True
        self.connection.execute("BEGIN IMMEDIATE")

    def _refuse_an_open_transaction(self) -> None:
        if self.connection.in_transaction:
            raise TwoPhaseError(f"the connection to the database '{self.name}' has a transaction open already")

    @property
    def is_in_transaction(self) -> bool:
        """Return whether the transaction is still open."""
        return self.connection.in_transaction

    def commit(self) -> None:
        """Commit."""
        self.connection.execute("COMMIT")
        self._has_begun = False

    def rollback(self) -> None:
        """Roll back, if anything of ours is open."""
        if self._has_begun and self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._has_begun = False

    def close(self) -> None:
        """Close the connection, unless the user has given it."""
        if self._path is not None and self._connection is not None:
            self._connection.close()
            self._connection = None

    def refuses(self, error: BaseException) -> bool:
        """Return whether an error is the database's word on the user's rows."""
        return isinstance(error, sqlite3.IntegrityError)

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Execute a statement of ours; return the rows."""
        cursor = self.connection.cursor()
        cursor.row_factory = None
        return cursor.execute(statement, parameters).fetchall()

    def change(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement of ours; return how many rows it has changed."""
        return self.connection.cursor().execute(statement, parameters).rowcount

    def has_table(self, name: str) -> bool:
        """Return whether there is a table of this name."""
        return bool(self.ask("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def create_table(self, statement: str) -> None:
        """Create a table, unless another instance is faster."""
        with self.own_transaction():
            self.change(statement)
