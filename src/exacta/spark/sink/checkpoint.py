"""Read a query's checkpoint for the sink: the query id, its own location, and what a micro-batch reads.

Spark writes these files, and this module only reads them. `note.py` owns the note that the sink itself writes beside
it.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import TYPE_CHECKING

from exacta.spark.sink.checkpoint_files import files_at, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CheckpointUnreadable(RuntimeError):
    """The checkpoint could not be read, or the sink's note could not be written there."""


class Checkpoint:
    """The checkpoint of one query, at `location`."""

    def __init__(self, location: str, spark: SparkSession | None = None) -> None:
        self.location = location
        self.files = files_at(location, spark)

    @property
    def canonical_location(self) -> str:
        """Return the location in the form in which two of them are compared."""
        return canonical_location(self.location)

    def query_id(self) -> str:
        """Return the id of the query whose checkpoint this is; raises `CheckpointUnreadable`."""
        try:
            found = json.loads(self.files.read("metadata"))["id"]
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointUnreadable(
                f"the query's id could not be read from the checkpoint at '{self.location}' (file 'metadata'): {error}"
            ) from error
        return str(found)

    def digest_of_batch(self, batch_id: int) -> str:
        """Return a digest of what a micro-batch reads, from the offsets that Spark wrote before it began the batch.

        They are written once: a replay reads them. The watermark counts, for it decides what an aggregation puts out;
        the time at which the batch was planned does not. Raises `CheckpointUnreadable`.
        """
        name = f"offsets/{batch_id}"
        try:
            _, metadata, *offsets = self.files.read(name).decode().splitlines()
            covered = [str(json.loads(metadata)["batchWatermarkMs"]), *offsets]
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointUnreadable(
                f"what batch {batch_id} reads could not be read from the checkpoint at '{self.location}' (file "
                f"'{name}'): {error}"
            ) from error
        return sha256("\n".join(covered).encode()).hexdigest()[:32]

    def is_finished(self, batch_id: int) -> bool:
        """Return whether Spark has noted that a micro-batch is done."""
        try:
            self.files.read(f"commits/{batch_id}")
        except OSError:
            return False
        return True

    def current_batch(self) -> int:
        """Return the number of the micro-batch that Spark has planned last, 0 where it has planned none.

        Raises `CheckpointUnreadable`.
        """
        try:
            names = self.files.names("offsets")
        except OSError as error:
            raise CheckpointUnreadable(
                f"the batches of the checkpoint at '{self.location}' could not be listed (folder 'offsets'): {error}"
            ) from error
        return max((int(name) for name in names if name.isdecimal()), default=0)


def canonical_location(location: str) -> str:
    """Return a location in the form in which two of them are compared."""
    path = local_path(location)
    return f"file:{os.path.realpath(path)}" if path is not None else location.rstrip("/")
