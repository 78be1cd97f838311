"""The journal as its readers see it: batches are found by stream and offset, and read."""

from collections.abc import Callable, Sequence
from typing import Protocol

from exacta.ports.journal.entries import Buffer, Extent, TimeEntry
from exacta.ports.journal.results import Failed


class JournalReader(Protocol):
    """Find and read batches; the package's docstring is the contract's first half.

    A look-up raises JournalDamaged where the index that it uses has been altered; see `on_failure`. An `end_offset` is
    exclusive.
    """

    @property
    def position(self) -> int:
        """The end of what is written: the `expected_position` of the next append or write."""

    def on_failure(self, callback: Callable[[Failed], None]) -> None:
        """Call back once this journal can no longer be used, for a reason that no call was there to report.

        To be called once, after opening. The reason is damage: a look-up found its index altered, or a cleaning did.
        Nothing that was found earlier may then be relied on, and nothing is appended any more. The next opening mends
        it, or says what is lost. A journal that is not exclusive also tells in this way that another broker leads.
        """

    def find(self, stream: int, offset: int, end_offset: int, max_bytes: int) -> list[Extent]:
        """Find written batches of `stream`, beginning with the first whose last offset is `offset` or later.

        Only batches that lie wholly below `end_offset` count. The extents are in order of offset and hold at most
        `max_bytes` together, but always at least one batch if there is one. Empty if there is none.
        """

    def find_by_time(self, stream: int, timestamp_ms: int, offset: int, end_offset: int) -> TimeEntry | None:
        """Find the first written batch of `stream` that has a timestamp of `timestamp_ms` or later.

        Only batches count whose last offset is `offset` or later and that lie wholly below `end_offset`.
        """

    def find_latest(self, stream: int, offset: int, end_offset: int) -> TimeEntry | None:
        """Find the written batch of `stream` with the latest timestamp, the first one if there are several.

        The same batches count as for `find_by_time`.
        """

    def count_records(self, stream: int, offset: int, end_offset: int) -> int:
        """Count the records of written batches of `stream` at offsets from `offset` on.

        Only batches that lie wholly below `end_offset` count. Of a batch that `offset` divides, as many records count
        as there are offsets from `offset` on in it, or all of its records if they are fewer.
        """

    def size_bytes(self, stream: int, offset: int, end_offset: int) -> int:
        """Return the size of the written batches of `stream`; the same ones count as for `find_by_time`."""

    def offset_after(self, stream: int, offset: int, end_offset: int, size_bytes: int) -> int:
        """Return the offset after the first batches of `stream` that have at most `size_bytes` together.

        The same batches count as for `find_by_time`. Returns `offset` itself if the first batch alone has more.
        """

    def compacted_to(self, stream: int) -> int:
        """Return up to which offset (exclusive) the stream is compacted; 0 if nothing of it is."""

    def read_cached(self, extents: Sequence[Extent]) -> list[Buffer] | None:
        """Return one buffer for each extent if all can be had without waiting; None: ask `read`.

        The bytes are as they are stored, unchecked: only a caller that knows batches can tell damage in them.
        """

    def read(self, extents: Sequence[Extent], done: Callable[[list[Buffer | Failed]], None]) -> None:
        """Read the extents from wherever they lie.

        `done` gets, for each extent and in their order, its bytes, unchecked as by `read_cached`, or `Failed`.
        """

    def close(self) -> None:
        """Finish what is in flight, make durable what is written, and release everything; no call is allowed then.

        The callbacks of what finished are still handed to the loop, if it has not been closed.
        """
