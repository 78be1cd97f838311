"""What the sink reads of a query's checkpoint: the query id, where the checkpoint is, and what a micro-batch reads.

Owns nothing there: Spark writes, we read. Local paths and `file:` need nothing; other file systems go through pyarrow.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from urllib.parse import unquote, urlsplit


class CheckpointUnreadable(RuntimeError):
    """The checkpoint's metadata could not be read."""


def query_id(location: str) -> str:
    """Return the id of the query whose checkpoint lies at `location`; raises `CheckpointUnreadable`."""
    try:
        found = json.loads(_read(location, "metadata"))["id"]
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointUnreadable(
            f"the query's id could not be read from the checkpoint at '{location}' (file 'metadata'): {error}"
        ) from error
    return str(found)


def digest_of_batch(location: str, batch_id: int) -> str:
    """Return a digest of what a micro-batch reads, from the offsets that Spark wrote before it began the batch.

    They are written once: a replay reads them. The watermark counts, for it decides what an aggregation puts out; the
    time at which the batch was planned does not. Raises `CheckpointUnreadable`.
    """
    name = f"offsets/{batch_id}"
    try:
        _, metadata, *offsets = _read(location, name).decode().splitlines()
        covered = [str(json.loads(metadata)["batchWatermarkMs"]), *offsets]
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointUnreadable(
            f"what batch {batch_id} reads could not be read from the checkpoint at '{location}' (file '{name}'): "
            f"{error}"
        ) from error
    return sha256("\n".join(covered).encode()).hexdigest()[:32]


def is_finished(location: str, batch_id: int) -> bool:
    """Return whether Spark has noted that a micro-batch is done."""
    try:
        _read(location, f"commits/{batch_id}")
    except OSError:
        return False
    return True


def canonical_location(location: str) -> str:
    """Return a location in the form in which two of them are compared."""
    path = _local_path(location)
    return f"file:{os.path.realpath(path)}" if path is not None else location.rstrip("/")


def _local_path(location: str) -> str | None:
    parts = urlsplit(location)
    if parts.scheme == "file":
        return unquote(parts.path)
    # One letter before the colon is a drive, not a scheme.
    return location if len(parts.scheme) <= 1 else None


def _read(location: str, name: str) -> bytes:
    path = _local_path(location)
    if path is not None:
        with open(os.path.join(path, name), "rb") as file:
            return file.read()
    from pyarrow import fs

    scheme, separator, rest = location.rstrip("/").partition(":")
    # Hadoop has three names for S3, pyarrow one.
    system, root = fs.FileSystem.from_uri(f"{'s3' if scheme in ('s3a', 's3n') else scheme}{separator}{rest}")
    with system.open_input_stream(f"{root}/{name}") as stream:
        content: bytes = stream.read()
    return content
