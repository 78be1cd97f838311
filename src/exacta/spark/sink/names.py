"""The names under which a query is known to the cluster (docs/explanation/spark-sink-protocol.md).

This module owns the naming only. Everything begins with the query's name, which is its id or what option
`transactional.id.prefix` says, and a hyphen. Ids and groups are a bounded set: one per task and attempt number, never
one per batch.

The name of one query may begin with the name of another (`a`, `a-1`), so what a prefix finds is only a first choice:
`is_attempt` says which transactional ids really are the query's.
"""

import re
import uuid
from collections.abc import Sequence

MARKER_METADATA = "spark replay marker "
"""The beginning of a replay marker's metadata: by it an Exacta knows groups that never expire."""

_MOST_SHOWN = 8
"""A line of a log names this many transactional ids and counts the others."""

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class QueryNames:
    """Transactional ids and groups of one query."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._attempt = re.compile(rf"{re.escape(name)}-(\d+)-\d+")
        # What `job` makes.
        self._job = re.compile(rf"({re.escape(name)}-{_UUID})-(driver|\d+-\d+|\d+|manifest(-\d+)?)")
        self._group = re.compile(rf"{re.escape(name)}-(\d+|(manifest)(-\d+)?)")

    @property
    def prefix(self) -> str:
        """Return the text that every transactional id of the query begins with."""
        return f"{self.name}-"

    @property
    def driver(self) -> str:
        """Return the transactional id of the driver; its holder decides."""
        return f"{self.name}-driver"

    def attempts(self, task: int) -> str:
        """Return the text that the transactional ids of a task's attempts begin with."""
        return f"{self.name}-{task}-"

    def attempt(self, task: int, attempt: int) -> str:
        """Return the transactional id of one attempt of a task.

        Each attempt has an id of its own, so that a losing attempt cannot fence the winner.
        """
        return f"{self.attempts(task)}{attempt}"

    def is_attempt(self, transactional_id: str, task: int | None = None) -> bool:
        """Return whether this is the transactional id of an attempt of this query, of any task or of one."""
        found = self._attempt.fullmatch(transactional_id)
        return found is not None and task in (None, int(found[1]))

    def marker_group(self, task: int) -> str:
        """Return the group whose offset is the last batch that the task's rows were committed for."""
        return f"{self.name}-{task}"

    def decision_group(self, piece: int) -> str:
        """Return the group whose offset is the last decided batch; a long record goes on in further groups."""
        return f"{self.name}-manifest" if piece == 0 else f"{self.name}-manifest-{piece}"

    def is_group(self, group: str) -> bool:
        """Return whether this is a group of this query."""
        return self._group.fullmatch(group) is not None

    def is_marker_group(self, group: str) -> bool:
        """Return whether this is a group of a task's replay markers."""
        return self.is_group(group) and not self.is_decision_group(group)

    def is_decision_group(self, group: str) -> bool:
        """Return whether this is a group of this query's decision record."""
        found = self._group.fullmatch(group)
        return found is not None and found[2] is not None

    def job(self) -> str:
        """Return a name for a batch job that no other job has: two of them must not fence each other."""
        return f"{self.name}-{uuid.uuid4()}"

    def job_in(self, found: str) -> str | None:
        """Return the name of a batch job of this prefix that a transactional id or group is of, or None."""
        match = self._job.fullmatch(found)
        return None if match is None else match[1]

    def sink_in(self, found: str) -> str | None:
        """Return the name of a further sink of this query that a transactional id or group tells of, or None.

        Such a sink is a query of its own on the cluster, by the name of this one, a dot and its own.
        """
        match = re.fullmatch(rf"({re.escape(self.name)}\..+)-(driver|manifest)", found)
        return None if match is None else match[1]


def shown_ids(transactional_ids: Sequence[str]) -> str:
    """Return transactional ids as a log shows them: the first ones, and how many more there are."""
    more = len(transactional_ids) - _MOST_SHOWN
    return ", ".join(transactional_ids[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
