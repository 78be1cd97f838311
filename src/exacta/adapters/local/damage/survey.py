"""What a look at a damaged journal found: its segments in their places, what was put right, what is lost.

Owns the data; `surveying` makes it, `walk` takes the segments apart. What is lost is told by position, and by entry
where the group's table can still be taken apart.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from exacta.adapters.local.damage.mended_journal import View
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import SegmentHeader, TableEntry
from exacta.ports.journal import Buffer, IndexEntry, Schema

IsBatch = Callable[[IndexEntry, Buffer], bool]


class Mended(NamedTuple):
    """What was put right, at no price."""

    name: str
    offset: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A part of the journal that a segment holds, or held: up to `end` (None: it is the last one).

    `header` is None where there is no segment, or nothing that one could be taken apart by.
    """

    base: int
    end: int | None
    generation: int
    name: str
    header: SegmentHeader | None
    is_compacted: bool = False
    """It has no place among the others: `base` and `end` are its number."""

    @property
    def has_batches_alone(self) -> bool:
        """Whether it was cleaned or compacted: there are no events, and positions are not the journal's."""
        return self.generation > 0 or self.is_compacted


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """What is neither sound nor can be put right: the journal from `begin` to `end`, which lies in this slot.

    In a cleaned segment that is all that it stands for, though most of it is sound. `entries` is the group's table,
    which has no checksum of its own: what it says must be held against something else.
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
        """Whether this is one group, of which it is known where it ends, and its bytes are all there."""
        return bool(self.entries)


@dataclass(slots=True)
class Survey:
    """All of it; `end` is where the journal ends, as far as groups and snapshots tell.

    `snapshots` are the sound ones by position, `unusable` the names of the others. `torn` says of the last slot at
    which byte writes begin that a crash cut short.
    """

    view: View
    is_batch: IsBatch
    schema: Schema | None = None
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
    """Whether nothing can have been written behind `end`: else the journal's last bytes are damaged."""

    @property
    def files(self) -> Files:
        """The view, for what takes `Files` and only looks."""
        return cast("Files", self.view)

    @property
    def numbers_of_compacted(self) -> range:
        """By which numbers the compacted segments go: those behind the slots'."""
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
