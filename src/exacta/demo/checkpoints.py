"""Read from Spark's own checkpoints how far the pipeline has come.

This module owns reading `offsets/` and `commits/` of a streaming query's checkpoint, from outside and while Spark
writes there. It does not ask the pipeline: what it would say dies with it, and the checkpoint is what a restart goes
by.

Theory of operation: a micro-batch N is planned when `offsets/N` is there and done when `commits/N` is. `offsets/N`
holds a version line, one line of JSON about the batch (its watermark, in milliseconds) and one with the source's end
offsets, `{"topic": {"partition": offset}}`. Spark renames finished files into place, so a file that is there is whole;
one that a purge takes away between listing and reading counts as not there.
"""

import json
from pathlib import Path

from msgspec import Struct

_VERSION_LINE, _BATCH_LINE, _FIRST_SOURCE_LINE = 0, 1, 2


class QueryProgress(Struct, frozen=True, kw_only=True):
    """Say which micro-batches of a query are planned and done, and what the last one done had read.

    A batch number is -1 where there is none yet.
    """

    last_planned: int = -1
    last_done: int = -1
    offsets_done: int = 0
    watermark_ms: int = 0

    @property
    def in_flight(self) -> bool:
        """Say whether a micro-batch is planned and not done."""
        return self.last_planned > self.last_done


def read_progress(checkpoint: Path) -> QueryProgress:
    """Read one query's progress; a checkpoint that is not there yet is no progress."""
    planned = _last_number(checkpoint / "offsets")
    done = _last_number(checkpoint / "commits")
    if done < 0:
        return QueryProgress(last_planned=planned)
    try:
        lines = (checkpoint / "offsets" / str(done)).read_text().splitlines()
    except FileNotFoundError:
        return QueryProgress(last_planned=planned, last_done=done)
    return QueryProgress(
        last_planned=planned,
        last_done=done,
        offsets_done=_sum_of_offsets(lines[_FIRST_SOURCE_LINE]),
        watermark_ms=int(json.loads(lines[_BATCH_LINE]).get("batchWatermarkMs", 0)),
    )


def _last_number(directory: Path) -> int:
    try:
        names = [entry.name for entry in directory.iterdir()]
    except FileNotFoundError:
        return -1
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _sum_of_offsets(line: str) -> int:
    """Add the offsets of all partitions of all topics; `-` is Spark's word for a source that has not been asked yet."""
    if line == "-":
        return 0
    return sum(offset for partitions in json.loads(line).values() for offset in partitions.values())
