"""Storage in memory: what a disk would keep, over the lives of the journals that are opened on it."""

from msgspec import Struct, field

from exacta.ports.journal import IndexEntry, Room


class StoredGroup(Struct, frozen=True, kw_only=True):
    """Hold what one append or write wrote: events, and batches with their rows."""

    position: int
    end: int
    events: tuple[bytes, ...]
    batches: tuple[tuple[IndexEntry, bytes], ...]

    @property
    def size(self) -> int:
        return self.end - self.position


class MemoryStorage(Struct, eq=False):
    """Hold what a disk would keep, and the faults to come: a reason in one of them makes `Failed`."""

    groups: list[StoredGroup] = field(default_factory=list)
    in_flight: StoredGroup | None = None
    last_appended: StoredGroup | None = None
    """The last group that a journal which is still in use has been told is durable."""
    unsynced: int = 0
    """The number of groups at the end that are written, and not durable."""
    may_have_lost: bool = False
    may_be_unsynced: bool = False
    """True if the journal that appended last was opened for unsynced writes, and was not closed."""
    snapshots: dict[int, bytes] = field(default_factory=dict)
    compacted: dict[int, list[tuple[IndexEntry, bytes]]] = field(default_factory=dict)
    """The batches that are left of each compacted stream, up to the offset to which it is compacted."""
    is_quick: bool = False
    """True if a group may be made durable while the event loop waits."""
    room: Room | None = None
    openings: int = 0
    """The number of journals that were opened: the last one may append."""
    append_fault: str | None = None
    clean_fault: str | None = None
    read_fault: str | None = None

    @property
    def position(self) -> int:
        """The end of the last group that is written."""
        return self.groups[-1].end if self.groups else 0

    def keep_in_flight(self) -> None:
        """Decide that the group in flight reached the disk, though nobody was told."""
        if self.in_flight is not None:
            self.groups.append(self.in_flight)
            self.in_flight = None
            self.unsynced = 0

    def stop_machine(self, lost: int | None = None) -> None:
        """Lose what is in flight, and of the groups that were written ahead of a sync all, or the last `lost`."""
        lost = self.unsynced if lost is None else lost
        assert lost <= self.unsynced
        del self.groups[len(self.groups) - lost :]
        self.in_flight = None
        self.unsynced = 0
        self.may_have_lost = self.may_have_lost or self.may_be_unsynced
