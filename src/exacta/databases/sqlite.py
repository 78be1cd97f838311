"""SQLite, by the driver of Python's standard library.

A transaction takes the write lock when it begins (`BEGIN IMMEDIATE`). Otherwise one that reads first could not be
continued by a write. Other writers wait meanwhile, also for the messages to be written.

Nothing but our `COMMIT` may end the transaction: otherwise rows are in the database without their messages. SQLite
rolls a transaction back by itself, too: by `INSERT OR ROLLBACK`, `RAISE(ROLLBACK)` in a trigger, a full disk, or an
interrupt. A program that passes over such an error goes on outside of the transaction, and each of its rows is
committed at once, or in a transaction that `sqlite3` begins. So an authorizer refuses BEGIN, COMMIT and ROLLBACK
within the block (with them `commit()`, `rollback()` and `executescript()`), and every statement once the transaction
is over. It is asked when a statement is prepared, and our own connections prepare each one again. Connections of the
user's may know a statement already: there `sqlite3` is to begin a transaction before it writes, which is refused. A
savepoint of a drawn name tells whether the transaction is still the one that was begun.

`PRAGMA synchronous=EXTRA` makes a commit durable. By less than that a stop of the machine can undo it, in a database
without a write-ahead log even by FULL: nothing syncs the directory in which the journal was deleted.
"""

import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exacta.databases.database import Database, Ended
from exacta.databases.errors import TwoPhaseError, one_line

_EXTRA = 3
_MEMORY = ":memory:"
_LEGACY = -1
"""`sqlite3.LEGACY_TRANSACTION_CONTROL`, from Python 3.12 on: `isolation_level` says what begins a transaction."""
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
        self._savepoint = ""
        """The name by which our transaction is known while the program's block runs; empty: no block does."""
        self._refused = ""
        """The statement that the authorizer has refused in the block at last."""
        self._modes: dict[str, Any] = {}
        """The attributes of the user's connection that are other ones until the transaction has ended."""
        if isinstance(database, sqlite3.Connection):
            self._connection = database
            self.name = "SQLite"
        else:
            # The program may go to another folder before the connection is made again.
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
                self._connection = sqlite3.connect(
                    self._path, timeout=timeout_ms / 1000, isolation_level=None, cached_statements=0
                )
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

    def guard(self) -> None:
        """See `Database.guard`. An authorizer of the user's is replaced: there is one, and it cannot be asked for."""
        self._savepoint, self._refused = f"exacta_{secrets.token_hex(8)}", ""
        self.connection.execute(f"SAVEPOINT {self._savepoint}")
        if self.is_given:
            self._let_begin()
        self.connection.set_authorizer(self._authorize)

    def _let_begin(self) -> None:
        """Let `sqlite3` begin a transaction before each statement that writes outside of one."""
        for name, never, always in (("isolation_level", None, ""), ("autocommit", True, _LEGACY)):
            if getattr(self.connection, name, always) is never:
                setattr(self.connection, name, always)
                self._modes[name] = never

    def _set_modes_back(self) -> None:
        """Let the user's connection be as it was; no transaction may be open, since this commits it."""
        while self._modes and self._connection is not None:
            setattr(self._connection, *self._modes.popitem())

    def _authorize(self, action: int, first: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_TRANSACTION:
            self._refused = f"{first} within the block: the transaction ends with the block"
        elif not self.connection.in_transaction:
            self._refused = "what comes after SQLite has rolled the transaction back: let its error leave the block"
        else:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def _let_go(self) -> str:
        """Refuse nothing any more; return the name of the savepoint."""
        savepoint, self._savepoint = self._savepoint, ""
        if savepoint and self._connection is not None:
            self._connection.set_authorizer(None)
        return savepoint

    def after_block(self) -> Ended | None:
        """See `Database.after_block`. The block cannot have committed, and has written nothing afterwards."""
        savepoint = self._let_go()
        try:
            if self.connection.in_transaction:
                self.connection.execute(f"RELEASE {savepoint}")
                return None
        except sqlite3.OperationalError as error:
            if "no such savepoint" not in str(error):
                raise
        return Ended("SQLite has rolled the transaction back within the block")

    def advise(self, error: BaseException) -> None:
        """See `Database.advise`: SQLite says "not authorized"."""
        if self._refused and isinstance(error, sqlite3.DatabaseError) and "not authorized" in str(error):
            error.add_note(f"exacta.two_phase refuses {self._refused}")

    def commit(self) -> None:
        """Commit."""
        self.connection.execute("COMMIT")
        self._has_begun = False
        self._set_modes_back()

    def rollback(self) -> None:
        """Roll back, if anything of ours is open."""
        self._let_go()
        if self._has_begun and self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._has_begun = False
        self._set_modes_back()

    def close(self) -> None:
        """Close the connection, unless the user has given it."""
        self._let_go()
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
