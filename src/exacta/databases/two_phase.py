"""`exacta.two_phase`: rows of a database and messages of the log, both or neither (KIP-939, decision 0039).

This module owns the order of the steps, and what follows when one fails or the process dies at it:

1. The block writes rows and messages. If it fails, both are rolled back *.
2. Prepare: all is in the log. If it fails, both are rolled back.
3. Decide: the row is written. If it fails, both are rolled back, by `TakenOver` where another instance is there.
4. The database commits. If it fails, the row says what came of it, which is found out by a recovery.
5. The log ends the transaction. If it fails, that is done later.

If the process dies before the end of step 3, neither is there once the next start has aborted. If it dies in step 4,
the next start reads the row, and both are there or neither. If it dies in step 5, both are there once the next start
has committed.

* A block that commits the database's transaction itself, by SQL that no driver refuses, has written half. Then the
error is `PartlyCommitted`.

Recovery is the same at a start and after a failure whose outcome is not known: take over the transactional id in the
log, which keeps what is open; take over the row in the database; commit what is open if the row names it, else abort
it. After a failure the id is taken over only from ourselves, so that two instances do not fence each other in turn.

Nobody else may end what is prepared. An operator can abort it in the log (`exacta transactions abort`), also after the
database has committed it. The next start says so, since nobody can mend it.

The transaction counts as committed as soon as the database has committed. If the log cannot be reached then, the block
ends without an error, and so does `close`: a program that repeats what has failed would do it twice.

A second instance may start at any moment. It fences the first one in the log, then in the database (`decisions.py`).
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, Self

from exacta.client.routing import Client
from exacta.databases.connection import cluster_of
from exacta.databases.database import Database, Ended
from exacta.databases.decisions import Decisions, Pair
from exacta.databases.errors import OutcomeUnknown, PartlyCommitted, TakenOver, TwoPhaseError, one_line, taken_over
from exacta.databases.log import Log
from exacta.databases.transaction import Transaction

logger = logging.getLogger("exacta.two_phase")


def two_phase(
    bootstrap_servers: str,
    *,
    transactional_id: str,
    database: Database,
    config: Mapping[str, str] | None = None,
    timeout_ms: float = 60_000,
) -> "TwoPhase":
    """Return what runs transactions over a log and a database; use it by `with`, or by `start` and `close`.

        with exacta.two_phase("127.0.0.1:9092", transactional_id="orders-1", database=exacta.Sqlite("shop.db")) as both:
            with both.transaction() as transaction:
                transaction.execute("INSERT INTO orders VALUES (?)", (42,))
                transaction.produce("orders", b"42")

    The start ends what a predecessor of the same `transactional_id` has left, and fences it. `config` says how the
    cluster is reached, by Kafka's names (`security.protocol` and so on). Each call to the broker, and each wait for a
    lock of the database at a start, may take `timeout_ms`. The broker needs `transaction.two.phase.commit.enable=true`.

    Raises `TwoPhaseError` for a wrong setting in `config`, and ValueError for an empty `transactional_id`.
    """
    return TwoPhase(bootstrap_servers, transactional_id, database, config, timeout_ms)


class TwoPhase:
    """Transactions over a log and a database, one after the other; for one thread."""

    def __init__(
        self,
        bootstrap_servers: str,
        transactional_id: str,
        database: Database,
        config: Mapping[str, str] | None,
        timeout_ms: float,
    ) -> None:
        if not transactional_id:
            raise ValueError("transactional_id must not be empty")
        cluster = cluster_of(bootstrap_servers, config or {})
        self.transactional_id = transactional_id
        self.recovered: str | None = None
        """The end that a start has given to what its predecessor left open: "committed", "aborted", or None."""
        self._database = database
        self._timeout_ms = timeout_ms
        self._log = Log(Client(cluster, call_timeout_ms=timeout_ms), transactional_id)
        self._decisions: Decisions | None = None
        self._holder: Pair | None = None
        """The pair by which the row in the database knows this instance; None where recovery is due."""
        self._taken_over: str | None = None
        """The reason why nothing can be done any more."""
        self._is_open = False

    # --- start and end ------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Connect, and end what a predecessor has left open. Raises `TwoPhaseError`."""
        try:
            self.recovered = self._recover()
        except BaseException:
            self._close()
            raise
        return self

    def close(self) -> None:
        """End what is still to be ended in the log, if that is possible, and close the connections."""
        try:
            if self._decisions is not None and self._holder is None and self._taken_over is None:
                self._recover()
        except TakenOver:
            pass  # the successor ends it
        except TwoPhaseError as error:
            logger.error(
                "the last transaction of '%s' is still open in the log, and holds readers back until the next start: "
                "%s",
                self.transactional_id,
                error,
            )
        finally:
            self._close()

    def _close(self) -> None:
        self._log.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- a transaction ------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Return a transaction, which is committed at the end of the `with`, and rolled back if an error leaves it.

        After an error there is nothing of the transaction in either place, unless the error is an `OutcomeUnknown`, or
        a `PartlyCommitted`: the block has ended the database's transaction itself, and rows of it are there. An error
        of the block, and an error of the database about the rows, is raised as it is. Any other one is a
        `TwoPhaseError`: `TakenOver` where another instance has the transactional id.
        """
        self._make_ready()
        transaction = Transaction(self._log, self._database)
        self._is_open = True
        holder, self._holder = self._holder, None  # recovery is due, unless both sides come to their end
        try:
            self._begin()
            try:
                yield transaction
            except Exception as error:
                self._look_at_half(error)
                raise
            finally:
                transaction.is_over = True
            pair = self._prepare()
            self._decide(holder, pair)
        except BaseException as error:
            self._database.advise(error)
            if self._roll_back(error):
                self._holder = holder
            raise
        finally:
            self._is_open = False
        if self._commit(pair):
            self._holder = holder

    def _make_ready(self) -> None:
        if self._is_open:
            raise TwoPhaseError("a transaction is open already: there is one at a time, in one thread")
        if self._decisions is None:
            raise TwoPhaseError("it is not started: use it by `with`, or call start()")
        if self._taken_over is not None:
            raise TakenOver(self._taken_over)
        if self._holder is None:
            self._recover()

    def _begin(self) -> None:
        """Begin in the database; on a new connection where the one of before was lost meanwhile."""
        self._log.begin()
        try:
            try:
                self._database.begin()
            except self._database.errors:
                if not self._database.is_lost:
                    raise
                self._discard()
                self._database.open(self._timeout_ms)
                self._database.begin()
            self._database.guard()
        except self._database.errors as error:
            raise self._failed("no transaction could begin", error) from error

    def _prepare(self) -> Pair | None:
        """Make durable in the log what the transaction has written; return its pair, or None for nothing."""
        try:
            ended = self._database.after_block()
        except self._database.errors as error:
            raise self._failed("it cannot say what became of the transaction in the block", error) from error
        if ended is not None:
            raise self._ended(ended)
        self._log.prepare()
        return self._log.pair if self._log.has_written else None

    def _look_at_half(self, error: Exception) -> None:
        """Raise `PartlyCommitted` for an error of the block, if the block has committed something before."""
        try:
            ended = self._database.after_block()
        except self._database.errors:
            return
        if ended is not None and ended.is_partly_committed:
            raise self._ended(ended) from error

    def _ended(self, ended: Ended) -> Exception:
        error = PartlyCommitted if ended.is_partly_committed else TwoPhaseError
        return error(f"the database '{self._database.name}': {ended.reason}")

    def _decide(self, holder: Pair | None, pair: Pair | None) -> None:
        assert self._decisions is not None
        assert holder is not None
        try:
            if pair is None:
                is_holder = self._decisions.confirm(holder)
            else:
                is_holder = self._decisions.decide(holder, pair)
        except self._database.errors as error:
            if self._database.refuses(error):
                raise
            raise self._failed("the decision could not be written", error) from error
        if not is_holder:
            raise taken_over(self.transactional_id, f"the database '{self._database.name}' lets only that one decide")

    def _commit(self, pair: Pair | None) -> bool:
        """Commit in both places; return False if it is done, or to be done, by a recovery."""
        try:
            self._database.commit()
        except self._database.errors as error:
            self._settle(pair, error)
            return False
        return pair is None or self._end_in_log()

    def _settle(self, pair: Pair | None, error: Exception) -> None:
        """Find out whether a commit that has failed has taken place; raise if it has not, or if nobody can say."""
        failed = self._failed("the commit failed", error)
        is_refused = self._database.refuses(error)
        try:
            found = self._take_over()
        except TwoPhaseError as unsettled:
            raise OutcomeUnknown(
                f"{failed}; whether it has taken place is decided at the next start: {unsettled}"
            ) from error
        is_committed = pair is not None and found.decided == pair
        try:
            self._end_left_open(found)
        except TwoPhaseError as late:
            _tell_of_late_end(late, commit=is_committed)
        if is_committed:
            return
        if is_refused:
            raise error
        # No row tells of a transaction without messages.
        raise (failed if pair is not None else OutcomeUnknown(str(failed))) from error

    def _end_in_log(self) -> bool:
        """Commit in the log what the database has committed; return False if that is done later, or by another one."""
        try:
            self._log.end(commit=True)
        except TakenOver as fenced:
            self._taken_over = str(fenced)
            logger.warning("%s; it commits the messages of the last transaction, too", fenced)
            return False
        except TwoPhaseError as late:
            _tell_of_late_end(late, commit=True)
            return False
        return True

    def _roll_back(self, error: BaseException) -> bool:
        """Undo both sides, as far as that is possible now; return False if recovery must do the rest."""
        if isinstance(error, TakenOver):
            self._taken_over = str(error)
        try:
            self._database.rollback()
        except self._database.errors as lost:
            logger.info("a transaction that is given up could not be rolled back: %s", one_line(lost))
            self._discard()
            return False
        if not self._log.has_written:
            return True
        if self._log.failure is not None or self._taken_over is not None or not isinstance(error, Exception):
            return False  # the log has just failed, or somebody is in a hurry
        try:
            self._log.end(commit=False)
        except TakenOver as fenced:
            self._taken_over = str(fenced)
            return False
        except TwoPhaseError as late:
            _tell_of_late_end(late, commit=False)
            return False
        return True

    def _discard(self) -> None:
        try:
            self._database.discard()
        except self._database.errors as lost:
            logger.info("a connection that is given up could not be rolled back: %s", one_line(lost))

    # --- recovery -----------------------------------------------------------------------------------------------------

    def _recover(self) -> str | None:
        """Take over in the log and in the database, and end what is open; return the end that it got, if any is.

        Raises `TwoPhaseError`; then recovery is still due.
        """
        return self._end_left_open(self._take_over())

    def _take_over(self) -> "_Found":
        """Take over in the log, then in the database, and read the row. Raises `TwoPhaseError`."""
        self._holder = None
        with self._errors_of_recovery():
            self._discard()
            self._database.open(self._timeout_ms)
            if self._decisions is None:
                decisions = Decisions(self._database, self._log.cluster_id(), self.transactional_id)
                decisions.make_table()
                self._decisions = decisions
            left_open = self._log.take_over()
            holder = self._log.pair
            return _Found(holder, left_open, self._decisions.take_over(holder))

    def _end_left_open(self, found: "_Found") -> str | None:
        """End in the log what is open, as the row says; return the end that it got. Raises `TwoPhaseError`."""
        is_decided = found.left_open == found.decided
        with self._errors_of_recovery():
            if found.left_open is not None:
                self._log.end(commit=is_decided)
            elif found.decided is not None:
                self._look_for_a_loss(found.decided)
        self._holder = found.holder
        if found.left_open is None:
            return None
        end = "committed" if is_decided else "aborted"
        logger.info("transactional id '%s': %s what was open as %s", self.transactional_id, end, found.left_open)
        return end

    def _look_for_a_loss(self, decided: Pair) -> None:
        """Say if somebody has aborted in the log what the database has committed: an operator can do so."""
        reason = self._log.why_aborted(decided)
        if reason is not None:
            logger.error(
                "the database has committed the last transaction of '%s', and its messages are lost: it was aborted in "
                "the log: %s",
                self.transactional_id,
                reason,
            )

    @contextmanager
    def _errors_of_recovery(self) -> Iterator[None]:
        try:
            yield
        except TakenOver as error:
            self._taken_over = str(error)
            raise
        except self._database.errors as error:
            raise self._failed("it could not be taken over", error) from error

    def _failed(self, what: str, error: BaseException) -> TwoPhaseError:
        return TwoPhaseError(f"the database '{self._database.name}': {what}: {one_line(error)}")


class _Found(NamedTuple):
    """The things that a recovery knows when it has taken over in both places."""

    holder: Pair
    """The pair of this instance in the row."""
    left_open: Pair | None
    """The pair of the transaction that is open in the log."""
    decided: Pair | None
    """The pair in the row: the last transaction that was committed."""


def _tell_of_late_end(late: TwoPhaseError, *, commit: bool) -> None:
    if commit:
        logger.warning("the last transaction is committed, its messages will be shown later: %s", late)
    else:
        logger.warning("a transaction that is given up could not be aborted in the log yet: %s", late)
