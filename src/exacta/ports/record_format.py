"""Record batches as bytes, for an engine that does not know their format (docs/explanation/architecture.md#d5).

`exacta.records` implements this contract. The engine uses it to place batches at their offsets and to make the control
batches that end transactions.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


class LogEntry(NamedTuple):
    """A batch with data, and the offsets that are its own."""

    base_offset: int
    offset_count: int
    batch: Buffer
    gaps: tuple[tuple[int, int], ...] = ()
    """The first and last offsets of the runs in it that have no message any more, because compaction has removed it."""


Converted = Callable[[list[LogEntry]], None]
"""Gets entries as the readers of one protocol take them."""


class RecordFormat(Protocol):
    """Make the bytes that go into the journal and, unchanged, to readers."""

    def place(self, batch: Buffer, base_offset: int) -> Sequence[Buffer]:
        """Return the validated batch at `base_offset`, as buffers of the same total size, without copying records."""

    def sound(self, batches: Buffer, first_offsets: Sequence[int]) -> tuple[int, str]:
        """Check that the bytes begin with batches that were placed at these offsets, one after another.

        Returns the size in bytes of the sound batches at the beginning, and what is wrong with the next one: empty if
        all are sound. Bytes after the last batch are not looked at.
        """

    def entries(self, batches: Buffer, aborted: Iterable[tuple[int, int, int]]) -> list[LogEntry]:
        """Return the batches that readers of committed records get, of sound ones that follow one another.

        `aborted` are the producer id, the first offset and the marker's offset of each aborted transaction.
        """

    def magic(self, batch: Buffer) -> int:
        """Return the number of the encoding of a batch's records."""

    def marker(
        self, base_offset: int, producer_id: int, producer_epoch: int, *, commit: bool, timestamp_ms: int
    ) -> bytes:
        """Return the control batch of one record that ends a transaction in one partition (KIP-98)."""
