"""The long jobs of a journal, run in place over files that no other process has."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.files import Files
from exacta.adapters.local.space import compaction_writer

T = TypeVar("T")


class InPlace:
    """Implement `exacta.adapters.local.child_process.JobRunner` in the process that asks, on its own thread."""

    def __init__(self, files: Files, key_bytes: int = compaction_writer.KEY_BYTES) -> None:
        """Let a compaction hold keys of at most `key_bytes` at a time."""
        self._files = files
        self._key_bytes = key_bytes

    def run(self, job: Callable[..., T], *args: object) -> T:
        """See `JobRunner.run`; the job gets copies, as another process would."""
        if job is compaction_writer.compact:
            args = *args, self._key_bytes
        copied_job, copies = pickle.loads(pickle.dumps((job, args)))
        return pickle.loads(pickle.dumps(copied_job(self._files, *copies)))  # type: ignore[no-any-return]

    def stop(self) -> None:
        """See `JobRunner.stop`: a job has ended before anything else runs."""


def open_journal(directory: Path | Files, call_soon: Callable[..., object], **options: Any) -> LocalJournal:
    """Open the journal as `LocalJournal.open` does; on a simulated disk its long jobs run in place."""
    if not isinstance(directory, Path):
        options["job_runner"] = InPlace(directory)
    return LocalJournal.open(directory, call_soon, **options)
