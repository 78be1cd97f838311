"""Survey of a damaged journal: its segments in their places, what was put right, and what is lost.

This is the data; `surveyor` makes it, and `segment_walk` takes the segments apart. What is lost is told by position,
and by entry if the group's table can still be read.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, cast

from msgspec import Struct, field

from exacta.adapters.local.damage.mended_journal import View
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import SegmentHeader, TableEntry
from exacta.ports.journal import Buffer, IndexEntry

IsBatch = Callable[[IndexEntry, Buffer], bool]


class Mended(NamedTuple):
    """Tell what was put right without giving anything up."""

    name: str
    offset: int
    what: str


class Slot(Struct, frozen=True, kw_only=True):
    """Name a part of the journal that a segment holds, or held: up to `end` (None: it is the last one).

    `header` is None where there is no segment, or nothing that one could be taken apart by.
    """

    base: int
    end: int | None
    generation: int
    name: str
    header: SegmentHeader | None
    is_compacted: bool = False
    """A compacted segment has no place among the others: `base` and `end` are its number."""

    @property
    def has_batches_alone(self) -> bool:
        """True if it was cleaned or compacted: it has no events, and its positions are not the journal's."""
        return self.generation > 0 or self.is_compacted


class Lost(Struct, frozen=True, kw_only=True):
    """Tell of a part that is damaged and cannot be put right: the journal from `begin` to `end`, in this slot.

    In a cleaned segment the part is all that the segment stands for, though most of it is sound. `entries` is the
    group's table, which has no checksum of its own: what it says must be checked against something else.
    """

    slot: int
    name: str
    offset: int
    begin: int
    end: int
    reason: str
    entries: tuple[TableEntry, ...] = ()
    payload_position: int = 0

    @property
    def is_whole(self) -> bool:
        """True if this is one group, its end is known, and all of its bytes are there."""
        return bool(self.entries)


class Survey(Struct, eq=False):
    """Hold everything that was found; `end` is where the journal ends, as far as groups and snapshots tell.

    `snapshots` are the positions of sound snapshots, `unusable` the names of the others. `torn` is the byte of the last
    slot at which writes begin that a crash cut short.
    """

    view: View
    is_batch: IsBatch
    mended: list[Mended] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    compacted: list[Slot] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    lost_compacted: list[Lost] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)
    torn: int | None = None
    end: int = 0
    is_end_known: bool = True
    """True if nothing can have been written after `end`; else the journal's last bytes are damaged."""

    @property
    def files(self) -> Files:
        """The view, for functions that take `Files` and only read."""
        return cast("Files", self.view)

    @property
    def numbers_of_compacted(self) -> range:
        """The numbers of the compacted segments, which follow those of the slots."""
        return range(len(self.slots), len(self.slots) + len(self.compacted))

    def slot(self, number: int) -> Slot:
        """Return the slot, or compacted segment, of this number."""
        return self.slots[number] if number < len(self.slots) else self.compacted[number - len(self.slots)]

    @contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """Open a file of the view."""
        handle = self.view.open(name)
        try:
            yield handle
        finally:
            self.view.close(handle)
