"""The names under which a query is known to the cluster (DESIGN.md §5).

Owns the naming only. Everything begins with the query id and a hyphen, so a query's transactions are found by prefix;
ids and groups are a bounded set: one per task and attempt number, never one per batch.
"""

from __future__ import annotations


class QueryNames:
    """Transactional ids and groups of one query."""

    def __init__(self, query_id: str) -> None:
        self.query_id = query_id

    @property
    def prefix(self) -> str:
        """What every transactional id of the query begins with."""
        return f"{self.query_id}-"

    @property
    def driver(self) -> str:
        """The transactional id of the driver: whoever holds it decides."""
        return f"{self.query_id}-driver"

    def attempts(self, task: int) -> str:
        """What the transactional ids of a task's attempts begin with."""
        return f"{self.query_id}-{task}-"

    def attempt(self, task: int, attempt: int) -> str:
        """The transactional id of one attempt of a task; its own, so that a losing attempt cannot fence the winner."""
        return f"{self.attempts(task)}{attempt}"

    def marker_group(self, task: int) -> str:
        """The group whose offset is the last batch that the task's rows were committed for."""
        return f"{self.query_id}-{task}"

    def decision_group(self, piece: int) -> str:
        """The group whose offset is the last decided batch; a long record goes on in further groups."""
        return f"{self.query_id}-manifest" if piece == 0 else f"{self.query_id}-manifest-{piece}"
