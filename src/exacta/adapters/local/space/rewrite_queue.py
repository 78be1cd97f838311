"""Cleanings and compactions, one after another: new segments are written, readers change over, the old ones go.

This module has the order of these steps and the meaning of a failure of each. `cleaning` and `compaction_writer` choose
and write; `compaction_plan` has the list of compacted segments.

Theory of operation. The keeping thread lets a process of its own choose and write, and puts in place what that has
written; the event loop changes readers over; the keeping thread removes the old files once nobody reads them. What is
left of them after a crash is removed at the next opening.

Once the step has begun that puts a new segment in place of old ones, or that moves the journal's beginning, a failure
leaves it unknown which of them the next opening will find. Then nothing more is cleaned or compacted in this opening,
lest it contradict what that finds.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from exacta.adapters.local.child_process import Interrupted, JobRunner
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import is_temporary
from exacta.adapters.local.index import sealed_segment
from exacta.adapters.local.index.segment_rows import DamagedIndex, Segment
from exacta.adapters.local.opening import first_position
from exacta.adapters.local.snapshots import snapshot_files
from exacta.adapters.local.space import cleaning, compacted_segments
from exacta.adapters.local.space import compaction_writer as compaction
from exacta.adapters.local.space.compacted_segments import Named
from exacta.adapters.local.space.compaction_writer import Source
from exacta.adapters.local.worker import Jobs
from exacta.ports.compaction import Compact
from exacta.ports.journal import Cleaned, Failed, JournalDamaged

logger = logging.getLogger(__name__)

T = TypeVar("T")
Done = Callable[[Cleaned | Failed], None]


class _JobOutcome(NamedTuple):
    """Tell how a job ended; `new` (None: nothing is left) takes the place of `old`, if there are any."""

    result: Cleaned | Failed
    old: Sequence[Segment] = ()
    new: Segment | None = None
    wants_snapshot: bool = False


class RewriteQueue:
    """Clean and compact one opened journal; every method is called on the event loop."""

    def __init__(
        self,
        files: Files,
        job_runner: JobRunner,
        thread: Jobs,
        post: Callable[..., None],
        *,
        segment_bytes: int,
        change_over: Callable[[Sequence[Segment], Segment | None, Callable[[], None]], None],
        want_snapshot: Callable[[], None],
        on_damage: Callable[[DamagedIndex], None],
        on_error: Callable[[OSError], None],
    ) -> None:
        """`change_over(old, new, then)` lets readers find all in `new`, and calls back when nobody reads in `old`."""
        self._files = files
        self._job_runner = job_runner
        self._thread = thread
        self._post = post
        self._segment_bytes = segment_bytes
        self._change_over = change_over
        self._want_snapshot = want_snapshot
        self._on_damage = on_damage
        self._on_error = on_error
        self._is_busy = False
        self._is_stopped = False
        self._is_certain = True
        """True while it is known what the next opening will find; used on the keeping thread."""
        self._waited_with: tuple[list[int], Mapping[int, int]] | None = None
        """The snapshots and floors with which everything waits for later snapshots; used on the keeping thread."""

    def stop(self) -> None:
        """Put nothing more in place: the journal is being closed."""
        self._is_stopped = True

    def clean(
        self,
        segments: Sequence[Segment],
        floors: Mapping[int, int],
        waits_for_index: bool,
        done: Done,
    ) -> None:
        """See `JournalSpace.clean`. `segments` are the oldest, sealed ones."""
        kept = dict(floors)

        def clean() -> _JobOutcome:
            outcome = self._make_room(segments, kept)
            if waits_for_index and isinstance(outcome.result, Cleaned):
                return outcome._replace(result=outcome.result._replace(may_free_more=True))
            return outcome

        def finish(result: _JobOutcome | Failed) -> None:
            self._finish(_JobOutcome(result) if isinstance(result, Failed) else result, done)

        self._submit(clean, "no space could be freed", finish)

    def compact(
        self, sources: Sequence[Source], rewriter: Compact, number: int, done: Callable[[Segment | Failed], None]
    ) -> None:
        """Write the compacted segment of this number, and put it in place."""
        self._submit(
            lambda: self._compact(sources, rewriter, number),
            "nothing could be compacted",
            lambda result: self._end(result, done),
        )

    def _submit(self, work: Callable[[], T], what_failed: str, finish: Callable[[T | Failed], None]) -> None:
        """Let the keeping thread do the work; `finish` gets what it comes to, on the event loop."""
        assert not self._is_busy, "one job at a time"
        self._is_busy = True

        def job() -> None:
            result: T | Failed = Failed(f"{what_failed}: see the log")
            try:
                if not self._is_certain:
                    result = Failed("after a failure nothing more is cleaned or compacted before the next start")
                else:
                    result = work()
            except DamagedIndex as damage:
                result = Failed(str(damage))
                self._post(self._on_damage, damage)
            except (OSError, JournalDamaged) as error:
                logger.warning("%s in %s: %s", what_failed, self._files.directory, error)
                if isinstance(error, OSError):
                    self._on_error(error)
                result = Failed(str(error))
            except Interrupted:
                result = Failed("the journal is being closed")
            finally:
                if isinstance(result, Failed):
                    self._remove_leavings()
                self._post(finish, result)

        self._thread.submit(job)

    def _compact(self, sources: Sequence[Source], rewriter: Compact, number: int) -> Segment:
        made = self._job_runner.run(compaction.compact, sources, rewriter, number, self._segment_bytes)
        if self._is_stopped:
            raise Interrupted
        if made.unreadable:
            logger.warning("%d batches were kept whole: their records cannot be read", made.unreadable)
        with self._uncertain_till_done():
            return sealed_segment.put_in_place(self._files, made.new)

    def name_compacted(self, named: Named, dropped: Sequence[Segment], done: Callable[[], None]) -> None:
        """Name the compacted segments that are left, then remove those that nobody reads."""

        def job() -> None:
            is_named = False
            try:
                compacted_segments.save(self._files, named)
                is_named = True
            except OSError as error:
                # Of those that are named nothing is missing, and the newest is taken in by its number: see `layout`.
                logger.warning("the list of compacted segments could not be written; the next one says it: %s", error)
            finally:
                if is_named and dropped:
                    self._post(self._remove, dropped, done)
                else:
                    self._post(done)

        self._thread.submit(job)

    def _make_room(self, segments: Sequence[Segment], floors: Mapping[int, int]) -> _JobOutcome:
        """Let it be chosen and written, and put it in place; on the keeping thread."""
        if not segments:
            return _JobOutcome(Cleaned(0))
        known = snapshot_files.positions(self._files), floors
        if self._waited_with == known:
            return _JobOutcome(Cleaned(0, may_free_more=True))
        ids = [segment.id for segment in segments]
        made = self._job_runner.run(cleaning.make_room, ids, floors, self._segment_bytes)
        if self._is_stopped:
            raise Interrupted
        if not made.segments:
            waits = made.waits_for_snapshot
            self._waited_with = known if waits else None
            return _JobOutcome(Cleaned(0, may_free_more=waits), wants_snapshot=waits)
        begin = ids.index(made.segments[0])
        old = segments[begin : begin + len(made.segments)]
        assert [segment.id for segment in old] == [*made.segments], "what is replaced lies side by side"
        if made.new is None:
            last = old[-1].index
            assert last is not None
            first_position.write(self._files, last.end)
            with self._uncertain_till_done():
                first_position.put_in_place(self._files)
            return _JobOutcome(Cleaned(made.freed_bytes), old)
        with self._uncertain_till_done():
            new = sealed_segment.put_in_place(self._files, made.new)
        return _JobOutcome(Cleaned(made.freed_bytes), old, new)

    @contextmanager
    def _uncertain_till_done(self) -> Iterator[None]:
        self._is_certain = False
        try:
            yield
        except OSError:
            logger.error("nothing more is cleaned in %s before the next start", self._files.directory)
            raise
        self._is_certain = True

    def _remove_leavings(self) -> None:
        """Remove what was written for nothing: on a full disk its bytes are somebody else's need."""
        with suppress(OSError):
            for name in filter(is_temporary, self._files.names()):
                with suppress(OSError):
                    self._files.remove_gradually(name, self._says_stopped)

    def _finish(self, outcome: _JobOutcome, done: Done) -> None:
        """Change over; on the event loop."""
        if self._is_stopped:
            return
        if outcome.wants_snapshot:
            self._want_snapshot()
        if outcome.old:

            def remove() -> None:
                self._remove(outcome.old, lambda: self._end(outcome.result, done))

            self._change_over(outcome.old, outcome.new, remove)
        else:
            self._end(outcome.result, done)

    def _remove(self, segments: Sequence[Segment], then: Callable[[], None]) -> None:
        """Remove segments that nobody reads, each by a job of its own, so that segment indexes come in between."""

        def remove(segment: Segment, *others: Segment) -> None:
            left: Sequence[Segment] = ()
            try:
                self._files.remove(segment.index_name)
                self._files.remove_gradually(segment.name, self._says_stopped)
                left = others
            except OSError as error:
                logger.warning("a file that is not needed any more stays until the next start: %s", error)
            finally:
                # Once stopped the next start removes the others.
                self._post(then) if not left or self._is_stopped else submit(left)

        def submit(left: Sequence[Segment]) -> None:
            self._thread.submit(lambda: remove(*left))

        submit(segments)

    def _says_stopped(self) -> bool:
        return self._is_stopped

    def _end(self, result: T, done: Callable[[T], None]) -> None:
        self._is_busy = False
        if not self._is_stopped:
            done(result)
