"""A Spark application remembers with which incarnation of the driver it has prepared a query's last batch.

This module owns one small file per query in Spark's local directory of the driver. Spark prepares a batch in one Python
process and calls `abort` in another. Where no task has sent a message, as when a job fails or a query is stopped in the
middle of a batch, the second process has nothing that tells it from a zombie: a newer run of the query may have the
transactional id by now, and ending what *that* has open would be wrong. Both processes belong to the same Spark
application, and so does the directory, which Spark makes again for each application and removes with it.
"""

import contextlib
import os
from hashlib import sha256
from pathlib import Path

import msgspec

from exacta.client.transactions import Producer

_DIRECTORIES = "SPARK_LOCAL_DIRS"
"""Spark tells its Python processes by this variable where the blocks of the application lie."""


def remember(name: str, driver: Producer) -> None:
    """Note the incarnation that a query's batch was prepared with; without a directory, or room in it, do nothing."""
    path = _path(name)
    if path is None:
        return
    with contextlib.suppress(OSError):
        beside = path.with_suffix(f".{os.getpid()}")
        beside.write_bytes(msgspec.json.encode(driver))
        beside.replace(path)


def recall(name: str) -> Producer | None:
    """Return the incarnation that this application has prepared the query's last batch with; None: not known."""
    path = _path(name)
    if path is None:
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Producer)
    except (OSError, msgspec.DecodeError):
        return None


def _path(name: str) -> Path | None:
    directory = os.environ.get(_DIRECTORIES, "").partition(",")[0]
    return Path(directory, f"exacta-{sha256(name.encode()).hexdigest()[:32]}") if directory else None
