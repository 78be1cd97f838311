"""Schedule of snapshots: when one is wanted, and how it is made while the journal is in use.

This module counts the events that a replay would have to go through, and gives the keeping thread its work. The files
are in `snapshot_files`.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from exacta.adapters.local.child_process import Interrupted, JobRunner
from exacta.adapters.local.files import Files
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.opening import replay
from exacta.adapters.local.snapshots import snapshot_files
from exacta.adapters.local.worker import Jobs
from exacta.ports.journal import Failed, Fold, JournalDamaged, JournalError

logger = logging.getLogger(__name__)

Done = Callable[[Failed | None], None]


class Snapshotter:
    """Make the snapshots of one opened journal; every method is called on the event loop."""

    def __init__(
        self,
        files: Files,
        job_runner: JobRunner,
        thread: Jobs,
        post: Callable[..., None],
        on_error: Callable[[OSError], None],
        *,
        snapshot_events: int,
    ) -> None:
        """After `snapshot_events` events a snapshot is wanted. `on_error` hears why one could not be written."""
        self._on_error = on_error
        self._files = files
        self._job_runner = job_runner
        self._thread = thread
        self._post = post
        self._snapshot_events = snapshot_events
        self._events_since = 0
        self._is_wanted = False
        self._is_folding = False
        self.replayed = (0, 0)
        """The position at which a replay begins, and the one that it has reached."""

    @property
    def is_wanted(self) -> bool:
        """See `Journal.wants_snapshot`."""
        return not self._is_folding and (self._is_wanted or self._events_since >= self._snapshot_events)

    def want(self) -> None:
        """Want a snapshot from now on."""
        self._is_wanted = True

    def count(self, events: int) -> None:
        """Note that this many more events are written."""
        self._events_since += events

    def save(self, blob: bytes, position: int, done: Done | None) -> None:
        """See `Journal.save_snapshot`."""
        self._keep(lambda: snapshot_files.save(self._files, blob, position), done)

    def fold(self, fold: Fold, segments: Sequence[Segment], position: int, done: Done) -> None:
        """See `Journal.fold_snapshot`; these are all segments of a journal that is durable up to `position`.

        The end of what is sealed gets one, too: behind two snapshots that can be cleaned, though nothing else comes.
        """
        assert not self._is_folding, "one fold at a time"
        self._is_folding = True
        ids = [segment.id for segment in segments]
        targets = sorted({min(segments[-1].base, position), position})

        def work() -> None:
            snapshot_files.keep_folded(self._files, self._job_runner.run(snapshot_files.fold, ids, targets, fold))

        def folded(result: Failed | None) -> None:
            self._is_folding = False
            if result is not None:
                self.want()
            done(result)

        self._keep(work, folded)

    def _keep(self, work: Callable[[], None], done: Done | None) -> None:
        self._is_wanted = False
        self._events_since = 0

        def job() -> None:
            result: Failed | None = Failed("the snapshot was not finished")
            try:
                work()
                result = None
            except Interrupted:
                result = Failed("the journal is being closed")
            except (OSError, JournalDamaged) as error:
                result = Failed(str(error))
                logger.warning("a snapshot could not be written in %s: %s", self._files.directory, error)
                if isinstance(error, OSError):
                    self._on_error(error)
            finally:
                if done is not None:
                    self._post(done, result)

        self._thread.submit(job)

    def replay(self, segments: Sequence[Segment]) -> tuple[bytes | None, Iterator[bytes]]:
        """See `Journal.replay`; these are all segments."""
        try:
            position, blob = snapshot_files.load_latest(self._files)
        except OSError as error:
            raise JournalError(f"a snapshot in {self._files.directory} cannot be read: {error}") from error
        return blob, self._counted(position, replay.segments_after(self._files, segments, position))

    def _note_replayed(self, begin: int, reached: int) -> None:
        self.replayed = begin, reached

    def _counted(self, position: int, segments: Sequence[Segment]) -> Iterator[bytes]:
        """Yield the events; this many, or of more than one segment, call for a snapshot."""
        try:
            self._note_replayed(position, position)
            for event in replay.events(self._files, segments, position, reached=partial(self._note_replayed, position)):
                self._events_since += 1
                yield event
        except OSError as error:
            raise JournalError(f"the journal in {self._files.directory} cannot be read: {error}") from error
        self._is_wanted = len(segments) > 1
