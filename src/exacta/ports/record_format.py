"""Record batches as bytes, for an engine that does not know their format (docs/explanation/architecture.md#d5).

`exacta.records` implements this contract. The engine uses it to place batches at their offsets and to make the control
batches that end transactions.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


class LogEntry(NamedTuple):
    """A batch with data, and the offsets that are its own."""

    base_offset: int
    offset_count: int
    batch: Buffer
    gaps: tuple[tuple[int, int], ...] | None = ()
    """The first and last offsets of the runs in it that have no message any more, because compaction has removed it.
    None: there may be some, and it was not opened yet."""


UNBOUNDED = (1 << 63) - 1


class Wanted(NamedTuple):
    """The form in which a reader wants entries: by default all of them, and another protocol's batch as one."""

    singly: bool = False
    """True: each message of another protocol's batch is an entry, because their keys may differ."""
    messages: Container[int] | None = None
    """The offsets of the messages of such batches that are wanted; None: all."""
    end: int = UNBOUNDED
    """The offset from which on messages of such batches are not wanted yet."""
    most_bytes: int = UNBOUNDED
    """This many bytes are wanted at once, with what each entry costs besides; the first entry is wanted in any case."""


class Converted(NamedTuple):
    """Entries as the readers of one protocol take them, whose gaps are known."""

    entries: list[LogEntry]
    end: int | None = None
    """The offset from which on nothing was converted; None: everything was."""


Convert = Callable[[list[LogEntry], Wanted, Callable[[Converted | Exception], None]], None]
"""Calls back, now or later, with what comes of entries as they lie in the log; or with why nothing did, a defect."""


class RecordFormat(Protocol):
    """Make the bytes that go into the journal, and to readers: unchanged, but for those of a batch that has moved."""

    def place(self, batch: Buffer, base_offset: int) -> Sequence[Buffer]:
        """Return the validated batch at `base_offset`, as buffers of the same total size, without copying records."""

    def move(self, batches: memoryview, first_offsets: Sequence[int], append_time_ms: int) -> None:
        """Let sound batches, which follow one another, say that they are placed at these offsets.

        The timestamps of those that have the log's become `append_time_ms`; -1: there are none.
        """

    def sound(self, batches: Buffer, first_offsets: Sequence[int]) -> tuple[int, str]:
        """Check that the bytes begin with batches that were placed at these offsets, one after another.

        Returns the size in bytes of the sound batches at the beginning, and what is wrong with the next one: empty if
        all are sound. Bytes after the last batch are not looked at.
        """

    def entries(self, batches: Buffer, aborted: Iterable[tuple[int, int, int]]) -> list[LogEntry]:
        """Return the batches that readers of committed records get, of sound ones that follow one another.

        `aborted` are the producer id, the first offset and the marker's offset of each aborted transaction. No batch is
        opened for its gaps.
        """

    def magic(self, batch: Buffer) -> int:
        """Return the number of the encoding of a batch's records."""

    def marker(
        self, base_offset: int, producer_id: int, producer_epoch: int, *, commit: bool, timestamp_ms: int
    ) -> bytes:
        """Return the control batch of one record that ends a transaction in one partition (KIP-98)."""
