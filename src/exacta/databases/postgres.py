"""PostgreSQL, by psycopg (the extra `exacta-log[postgres]`).

psycopg refuses `commit()` and `rollback()` within the block. It does not read SQL, so that `COMMIT` or `ROLLBACK` may
be executed, and another transaction begun behind it. The number of the transaction tells whether it is still the one
that was begun, and PostgreSQL knows what became of that.

The driver is loaded when it is needed, so that users of SQLite need not have it.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from exacta.databases.database import Database, Ended
from exacta.databases.errors import TwoPhaseError, one_line
from exacta.extras import install_extra

if TYPE_CHECKING:
    import psycopg

_CONNECTION_LOST = "08"
_OPERATOR_INTERVENTION = "57"
"""The classes of SQLSTATE by which the server says that it breaks off, and nothing about the statement."""

_DURABLE = (
    "RETURNING set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
    "ELSE current_setting('synchronous_commit') END, true)"
)
"""The end that makes the commit durable: `synchronous_commit=off` answers before that, and a crash undoes it."""


class Postgres(Database):
    """A database of PostgreSQL: a connection string of libpq, or a connection of psycopg with no transaction open."""

    placeholder = "%s"
    at_a_decision = _DURABLE

    def __init__(self, database: "str | psycopg.Connection[Any]") -> None:
        self.is_given = not isinstance(database, str)
        self._conninfo = database if isinstance(database, str) else ""
        self._connection: psycopg.Connection[Any] | None = None if isinstance(database, str) else database
        self._block: AbstractContextManager[psycopg.Transaction] | None = None
        self._timeout_ms = 0.0
        self._number = 0
        """The number of the transaction that the program's block belongs to."""
        self.name = "PostgreSQL"

    @property
    def connection(self) -> "psycopg.Connection[Any]":
        """Return the driver's connection."""
        if self._connection is None:
            raise TwoPhaseError(f"the database '{self.name}' is not open")
        return self._connection

    def open(self, timeout_ms: float) -> None:
        """Connect, unless there is a connection."""
        try:
            import psycopg
        except ImportError as error:
            raise TwoPhaseError(
                f"PostgreSQL needs the driver psycopg: {install_extra('postgres')} ({one_line(error)})"
            ) from error
        self.errors = (psycopg.Error,)
        self._timeout_ms = timeout_ms
        if self.is_lost and not self.is_given:
            self.close()
        if self._connection is None:
            try:
                # Without autocommit: what a block does after a ROLLBACK of its own is not committed by itself.
                self._connection = psycopg.connect(self._conninfo, connect_timeout=max(2, int(timeout_ms / 1000)))
            except psycopg.Error as error:
                raise TwoPhaseError(f"there is no connection to PostgreSQL: {one_line(error)}") from error
        self.name = self._connection.info.dbname
        self._refuse_an_open_transaction()

    def begin(self) -> None:
        """Begin a transaction. psycopg refuses `commit()` and `rollback()` of its connection until it ends."""
        self._refuse_an_open_transaction()
        block = self.connection.transaction()
        block.__enter__()
        self._block = block

    def _refuse_an_open_transaction(self) -> None:
        from psycopg import OperationalError
        from psycopg.pq import TransactionStatus

        if self.is_lost:
            raise OperationalError("the connection is closed")
        if self.connection.info.transaction_status != TransactionStatus.IDLE:
            raise TwoPhaseError(f"the connection to the database '{self.name}' has a transaction open already")

    def begin_own(self) -> None:
        """See `Database.begin_own`. It reads what is committed, whatever isolation level the user has set."""
        self.begin()
        self.connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        self.connection.execute(f"SET LOCAL lock_timeout = {max(1, int(self._timeout_ms))}".encode())

    @property
    def is_lost(self) -> bool:
        """Return whether the connection was there, and is of no more use."""
        return self._connection is not None and bool(self._connection.closed)

    def guard(self) -> None:
        """See `Database.guard`. Whatever writes gets a number, and the decision writes in any case."""
        ((self._number,),) = self.ask("SELECT txid_current()")

    def after_block(self) -> Ended | None:
        """See `Database.after_block`."""
        from psycopg import Error
        from psycopg.pq import TransactionStatus

        status = self.connection.info.transaction_status
        if status == TransactionStatus.INTRANS and self.ask("SELECT txid_current()") == [(self._number,)]:
            return None
        if self.is_lost:
            return Ended("the connection was lost within the block")
        try:
            self.connection.execute("ROLLBACK")
            ((fate,),) = self.ask("SELECT txid_status(%s)", (self._number,))
        except Error as error:
            return Ended(
                "the transaction was ended, or has failed, within the block, and nobody can say what is in the "
                f"database: {one_line(error)}",
                is_partly_committed=True,
            )
        if fate == "committed":
            return Ended(
                "the block has committed the transaction itself: what it had written until then is in the database, "
                "without its messages",
                is_partly_committed=True,
            )
        if status != TransactionStatus.INERROR and self.connection.autocommit:
            return Ended(
                "the block has rolled the transaction back itself; what it has written since then may be in the "
                "database, without its messages",
                is_partly_committed=True,
            )
        return Ended("the transaction was rolled back, or has failed, within the block")

    def commit(self) -> None:
        """Commit."""
        from psycopg import OperationalError

        block, self._block = self._block, None
        assert block is not None
        if self.is_lost:  # psycopg would return as if it had committed
            raise OperationalError("the connection is closed")
        block.__exit__(None, None, None)

    def rollback(self) -> None:
        """Roll back, if anything of ours is open."""
        from psycopg import OperationalError, Rollback
        from psycopg.pq import TransactionStatus

        block, self._block = self._block, None
        if block is None:
            return
        block.__exit__(Rollback, Rollback(), None)
        if self._connection is not None and self._connection.info.transaction_status != TransactionStatus.IDLE:
            raise OperationalError("the transaction could not be rolled back")

    def close(self) -> None:
        """Close the connection, unless the user has given it."""
        self._block = None
        if not self.is_given and self._connection is not None:
            self._connection.close()
            self._connection = None

    def refuses(self, error: BaseException) -> bool:
        """Return whether an error is the database's word on the user's rows, or on the transactions beside this one."""
        code = getattr(error, "sqlstate", None)
        return code is not None and not self.is_lost and code[:2] not in (_CONNECTION_LOST, _OPERATOR_INTERVENTION)

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Execute a statement of ours; return the rows."""
        from psycopg.rows import tuple_row

        with self.connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(statement.encode(), parameters).fetchall()

    def change(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement of ours; return how many rows it has changed."""
        with self.connection.cursor() as cursor:
            return cursor.execute(statement.encode(), parameters or None).rowcount

    def has_table(self, name: str) -> bool:
        """Return whether there is a table of this name, where the connection looks for tables."""
        with self.own_transaction():
            return self.ask("SELECT to_regclass(%s) IS NOT NULL", (name,)) == [(True,)]

    def create_table(self, statement: str) -> None:
        """Create a table, unless another instance is faster."""
        from psycopg.errors import DuplicateTable, UniqueViolation

        try:
            with self.own_transaction():
                self.change(statement)
        except (DuplicateTable, UniqueViolation):
            return
