"""The table in the database that says which transaction was decided, and who may decide.

A row belongs to a cluster and a transactional id. It holds two pairs of producer id and epoch:

- *holder*: the pair with which the present instance has taken over. Only that instance decides.
- *decided*: the pair of the last transaction that was committed. A pair names one transaction (KIP-939, decision 0011).

    statement \\ the row's holder   there is no row   an earlier one   P itself               a later one
    take over (P)                  holder P          holder P         holder P               `TakenOver`
    decide (P, Q)                  fenced            fenced           decided Q              fenced
    confirm (P)                    fenced            fenced           decided as it was      fenced

Where a statement is fenced nothing is changed. To take over changes nothing of what was decided, nor does to decide
change the holder.

Theory of operation. Decide is the last statement of the database's transaction, and is committed with the user's rows.
Take over is a transaction by itself. The database locks the row for both, so one waits for the other's end. After a
take-over the predecessor's statement finds another holder. So it either has decided before the successor reads the row,
or it never will. Pairs of a transactional id grow, which tells the later instance from the earlier one where two start
at once. The cluster is a part of the key, since another cluster gives the same pairs to other transactions.
"""

from exacta.databases.database import Database
from exacta.databases.errors import taken_over

TABLE = "exacta_decisions"

DEFINITION = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    cluster_id TEXT NOT NULL,
    transactional_id TEXT NOT NULL,
    holder_producer_id BIGINT NOT NULL,
    holder_producer_epoch INTEGER NOT NULL,
    decided_producer_id BIGINT,
    decided_producer_epoch INTEGER,
    PRIMARY KEY (cluster_id, transactional_id)
)
"""

Pair = tuple[int, int]
"""A producer id and a producer epoch."""

_TAKE_OVER = f"""
INSERT INTO {TABLE} (cluster_id, transactional_id, holder_producer_id, holder_producer_epoch) VALUES (?, ?, ?, ?)
ON CONFLICT (cluster_id, transactional_id) DO UPDATE
SET holder_producer_id = excluded.holder_producer_id, holder_producer_epoch = excluded.holder_producer_epoch
WHERE ({TABLE}.holder_producer_id, {TABLE}.holder_producer_epoch)
    <= (excluded.holder_producer_id, excluded.holder_producer_epoch)
"""
_READ = f"""
SELECT holder_producer_id, holder_producer_epoch, decided_producer_id, decided_producer_epoch
FROM {TABLE} WHERE cluster_id = ? AND transactional_id = ?
"""
_OF_THE_HOLDER = (
    "WHERE cluster_id = ? AND transactional_id = ? AND holder_producer_id = ? AND holder_producer_epoch = ?"
)
_DECIDE = f"UPDATE {TABLE} SET decided_producer_id = ?, decided_producer_epoch = ? {_OF_THE_HOLDER}"
_CONFIRM = f"UPDATE {TABLE} SET holder_producer_epoch = holder_producer_epoch {_OF_THE_HOLDER}"


class Decisions:
    """The row of one transactional id. Errors are those of the database's driver, unless something else is said."""

    def __init__(self, database: Database, cluster_id: str, transactional_id: str) -> None:
        self._database = database
        self._key = (cluster_id, transactional_id)

    def make_table(self) -> None:
        """Create the table, where it is not there."""
        if not self._database.has_table(TABLE):
            self._database.create_table(DEFINITION)

    def take_over(self, holder: Pair) -> Pair | None:
        """Let nobody decide from now on but `holder`; return the pair that was decided last, if any was.

        Raises `TakenOver` if a later one has been here.
        """
        with self._database.own_transaction():
            self._database.change(self._sql(_TAKE_OVER), (*self._key, *holder))
            (row,) = self._database.ask(self._sql(_READ), self._key)
            present: Pair = (row[0], row[1])
            if present != holder:
                raise taken_over(
                    self._key[1],
                    f"the database '{self._database.name}' knows a later one (if none has started meanwhile, the log "
                    "was put back to an older state)",
                )
        return None if row[2] is None else (row[2], row[3])

    def decide(self, holder: Pair, pair: Pair) -> bool:
        """Decide, within the database's open transaction, that `pair` commits; return False where we are fenced."""
        statement = f"{_DECIDE} {self._database.at_a_decision}"
        return self._database.change(self._sql(statement), (*pair, *self._key, *holder)) == 1

    def confirm(self, holder: Pair) -> bool:
        """Lock the row within the database's open transaction, for one without messages; return False if fenced.

        The pair must not be decided here: the next transaction with messages has it, too.
        """
        statement = f"{_CONFIRM} {self._database.at_a_decision}"
        return self._database.change(self._sql(statement), (*self._key, *holder)) == 1

    def _sql(self, statement: str) -> str:
        return statement.replace("?", self._database.placeholder)
