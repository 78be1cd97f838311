"""The contract between a transaction over log and database, and the database.

It asks little: local transactions that are durable once they are committed. There is no two-phase commit of the
database itself, since the row that says what was decided is committed together with the user's rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple


class Ended(NamedTuple):
    """A transaction that has ended, or failed, within the program's block."""

    reason: str
    is_partly_committed: bool = False
    """True if rows of the block are in the database, or may be."""


class Database(ABC):
    """A database that is used over one connection, by one thread. Its errors are those of its driver.

    It makes the connection itself, and makes it again when it is lost, unless the user has given one.
    """

    name: str
    """The name for messages. It shows no secret."""
    is_given: bool
    """True if the connection is the user's own."""
    placeholder: str
    """The placeholder of a parameter in a statement."""
    at_a_decision = ""
    """SQL at the end of the statement that decides, where the database needs it for a durable commit."""
    errors: tuple[type[Exception], ...] = ()
    """The root of the driver's errors. There may be none before `open` is called."""

    @property
    @abstractmethod
    def connection(self) -> Any:
        """Return the driver's connection."""

    @abstractmethod
    def open(self, timeout_ms: float) -> None:
        """Connect, unless there is a connection, and make sure that commits are durable.

        Waiting for a lock ends after about `timeout_ms`. Raises `TwoPhaseError` where the database cannot serve.
        """

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction; raises `TwoPhaseError` if the user has one open."""

    @property
    def is_lost(self) -> bool:
        """Return whether the connection was there, and is of no more use."""
        return False

    @abstractmethod
    def guard(self) -> None:
        """Notice from now on if the program's block ends the transaction that has just begun; keep it from that."""

    @abstractmethod
    def after_block(self) -> "Ended | None":
        """Return what became of the transaction in the program's block; None: it is open, and can be committed."""

    def advise(self, error: BaseException) -> None:
        """Add to an error of the driver what its words do not say, where the guard has caused it."""
        return

    @abstractmethod
    def commit(self) -> None:
        """Commit. If this raises, the transaction may be committed or not."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll back, if anything of ours is open; if this raises, the connection is of no more use.

        A transaction that the user has begun on their own connection is left as it is: `begin` refuses it.
        """

    def discard(self) -> None:
        """Give up a connection whose state is unknown. One that the user has given is rolled back, and kept."""
        if self.is_given:
            self.rollback()
        else:
            self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the connection, unless the user has given it."""

    @abstractmethod
    def refuses(self, error: BaseException) -> bool:
        """Return whether an error is the database's word on the user's rows, such as a constraint."""

    @abstractmethod
    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Execute a statement of ours; return the rows, whatever form the user has chosen for rows of his own."""

    @abstractmethod
    def change(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement of ours; return how many rows it has changed."""

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Return whether there is a table of this name."""

    @abstractmethod
    def create_table(self, statement: str) -> None:
        """Create a table, unless another instance is faster."""

    def begin_own(self) -> None:
        """Begin a transaction of `Decisions`. It waits for those before it, and then sees what they have committed."""
        self.begin()

    @contextmanager
    def own_transaction(self) -> Iterator[None]:
        """Run statements of `Decisions` in a transaction, which is committed at the end of the `with`.

        If an error leaves the `with`, the transaction is rolled back.
        """
        try:
            self.begin_own()
            yield
        except BaseException:
            self.rollback()
            raise
        self.commit()
