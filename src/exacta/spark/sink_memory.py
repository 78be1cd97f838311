"""What `exacta.spark.write` remembers of a sink from batch to batch, in this process.

Owns two things, neither of which a guarantee hangs on: how large the batches are, and which batch was written last, so
that two calls under one name are told from each other. (The cluster remembers the batch only; the second call would be
taken for a replay, and its rows left out.)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from exacta.spark.sink_errors import SinkError


class SinkMemory:
    """One sink of one run of a query."""

    def __init__(self, name: str, run_id: str | None) -> None:
        self.run_id = run_id
        self._name = name
        self._batch_id = -1
        self._bytes_per_row = 0.0
        self._last_rows = 0

    @contextmanager
    def writing(self, batch_id: int) -> Iterator[None]:
        """Note that a batch is being written, and forget it where that fails; raises `SinkError` on a second call."""
        if batch_id == self._batch_id:
            raise SinkError(
                f"batch {batch_id} was written to sink '{self._name}' before, in this run of the query, and a second "
                "call of write with other rows would be taken for its replay: where a query writes to several sinks, "
                "give each but one a name of its own by option 'sink.name'"
            )
        before, self._batch_id = self._batch_id, batch_id
        try:
            yield
        except BaseException:
            self._batch_id = before
            raise

    def most_rows(self, driver_rows: int, driver_bytes: int) -> int:
        """Return how many rows the driver should ask for, to write them alone; 0: none, the last batch was large."""
        most = driver_rows
        if self._bytes_per_row:
            most = min(most, int(driver_bytes / self._bytes_per_row))
        return most if self._last_rows <= most else 0

    def wrote_alone(self, rows: int, size_bytes: int) -> None:
        """Note a batch that the driver wrote alone."""
        self._last_rows = rows
        if rows:
            self._bytes_per_row = size_bytes / rows

    def wrote_by_tasks(self, rows: int) -> None:
        """Note a batch that tasks wrote."""
        self._last_rows = rows

    def was_too_much(self) -> None:
        """Note that Spark refused to send the driver what it had asked for: it does not ask again."""
        self._bytes_per_row = float("inf")


_memories: dict[str, SinkMemory] = {}


def memory_of(name: str, run_id: str | None) -> SinkMemory:
    """Return what is remembered of the sink with this name, from this run of the query on."""
    found = _memories.get(name)
    if found is None or found.run_id != run_id:
        found = _memories[name] = SinkMemory(name, run_id)
    return found
