"""Remember, in this process, what `exacta.spark.write` learned of a sink from batch to batch.

This module owns three things. It keeps how large the batches and their rows are; no guarantee hangs on that. It keeps
which batch was written last, so that two calls under one name are told from each other: the cluster remembers the batch
only, so the second call would be taken for a replay, and its rows left out. And it keeps which sinks this run of the
query has used, by which a further sink is told from one whose name was changed (`note.py`).

The known size of a row grows old while tasks write: one huge row must not keep all later batches from the driver. So
the module asks again after some batches, and learns again. If it asked in vain, one batch of many was computed twice.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from exacta.spark.sink.errors import SinkError

_ASSUMED_BYTES_PER_ROW = 1024.0
"""The bytes that a row is taken for while none was seen."""

_AGED_AFTER = 20
"""After this many batches without a row seen, rows are taken to be this many times smaller than they were."""
_SMALLER = 4

_LARGER = 16
"""The factor by which rows are taken to be larger when Spark refuses to send them."""

_GROWTH = 4
"""A batch is expected to have less than this many times the rows of the last one."""


class SinkMemory:
    """One sink of one run of a query."""

    def __init__(self, name: str, run_id: str | None) -> None:
        self.run_id = run_id
        self._name = name
        self._batch_id = -1
        self._bytes_per_row = _ASSUMED_BYTES_PER_ROW
        self._last_rows = 0
        self._unseen = 0  # batches since rows were seen, or taken to be smaller
        self._resting = 0  # for this many batches the driver does not ask
        self._partitions: int | None = None

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
        most = _at_most(driver_rows, driver_bytes / self._bytes_per_row)
        return most if self._last_rows <= most and not self._resting else 0

    def most_of_each(self, most_rows: int, driver_bytes: int) -> int:
        """Return how many of those rows one partition may send, so that all together come to about `driver_bytes`."""
        share = driver_bytes / (self._partitions or 1)
        return max(1, _at_most(most_rows, share / self._bytes_per_row))

    def expects_less_than(self, rows: int) -> bool:
        """Return whether the next batch will most likely have fewer rows than this many, by the last one."""
        return 0 < self._last_rows * _GROWTH <= rows

    def expect(self, partitions: Callable[[], int]) -> None:
        """Ask how many partitions a batch has, unless that is known."""
        if self._partitions is None:
            self._partitions = partitions()

    def saw(self, rows: int, size_bytes: int, partitions: int) -> None:
        """Note what the driver was sent."""
        if rows:
            self._bytes_per_row = max(1.0, size_bytes / rows)
            self._unseen = 0
        self._partitions = max(self._partitions or 1, partitions)

    def wrote_alone(self, rows: int) -> None:
        """Note a batch that the driver wrote alone."""
        self._last_rows = rows

    def wrote_by_tasks(self, rows: int, asked: int = 0) -> None:
        """Note a batch that tasks wrote, after the driver had asked for at most this many rows in vain.

        If there were no more rows than that, they lie in few of its partitions, and most likely will again.
        """
        self._last_rows = rows
        self._resting = _AGED_AFTER if asked and rows <= asked else max(0, self._resting - 1)
        self._unseen += 1
        if self._unseen > _AGED_AFTER:
            self._unseen = 0
            # Not below what a new query assumes, unless that was seen.
            smallest = min(self._bytes_per_row, _ASSUMED_BYTES_PER_ROW)
            self._bytes_per_row = max(self._bytes_per_row / _SMALLER, smallest)

    def was_too_much(self) -> None:
        """Note that Spark refused to send the driver what it had asked for: it asks for much less."""
        self._bytes_per_row = _LARGER * max(self._bytes_per_row, _ASSUMED_BYTES_PER_ROW)
        self._unseen = 0


def _at_most(wanted: int, rows: float) -> int:
    """Return the wanted number of rows, or the power of two below the number that is allowed.

    The number stands in code that Spark compiles. Spark would compile it again for every batch if the number followed
    the size of the batch's rows.
    """
    return wanted if rows >= wanted else 1 << (int(rows).bit_length() - 1) if rows >= 1 else 0


_memories: dict[str, SinkMemory] = {}


def memory_of(name: str, run_id: str | None) -> SinkMemory:
    """Return what is remembered of the sink with this name, from this run of the query on."""
    found = _memories.get(name)
    if found is None or found.run_id != run_id:
        found = _memories[name] = SinkMemory(name, run_id)
    return found


_used: dict[tuple[str, str | None], set[str | None]] = {}


def used_sinks(query_id: str, run_id: str | None) -> set[str | None]:
    """Return the names (option `sink.name`) of the sinks that a run of a query has used, to be added to."""
    return _used.setdefault((query_id, run_id), set())
