"""The journals that a server can keep its log in. The server asks them, and knows no class of a journal.

There are two kinds. A broker alone opens one of `JOURNALS`. The brokers of a cluster open a journal that they share,
again and again: to follow it, and after each failure.
"""

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.files import Files
from exacta.config.configuration import Configuration
from exacta.engine.schema import SCHEMA
from exacta.histogram import Histogram
from exacta.ports.following import Follower
from exacta.ports.journal import Journal
from exacta.ports.scheduler import Scheduler
from exacta.ports.shared import Ledger


class ServedJournal(Journal, Protocol):
    """A journal as a server has it, with what its start and its metrics show."""

    syncs: Histogram
    """The times that syncs took."""

    @property
    def reserve_bytes(self) -> int:
        """The bytes that the reserve of the disk holds."""

    @property
    def replayed_bytes(self) -> tuple[int, int]:
        """The bytes that recovery has read so far, and all that it has to read. Any thread may ask."""


class Place(Struct, frozen=True, kw_only=True):
    """The place of a journal, and how it is kept there."""

    directory: Path
    call_soon: Callable[..., object]
    """A function that lets a callback run on the event loop, from any thread."""
    configuration: Configuration
    reserve_bytes: int
    """The most that is kept of the disk for when it is full."""


OpenJournal: TypeAlias = Callable[[Place], ServedJournal]
"""Opens the journal of a place; blocks. Raises JournalError and OSError."""


def open_local(place: Place, *, files: Callable[[Path], Files] | None = None) -> ServedJournal:
    """Open a journal in files of this machine; `files` makes them, those of the operating system by default."""
    configuration = place.configuration
    return LocalJournal.open(
        place.directory if files is None else files(place.directory),
        place.call_soon,
        schema=SCHEMA,
        segment_bytes=configuration.log_segment_bytes,
        unsynced_writes=not configuration.transaction_sync_every_write,
        reserve_bytes=place.reserve_bytes,
    )


LOCAL = "local"

JOURNALS: Mapping[str, OpenJournal] = {LOCAL: open_local}


class SharedPlace(Struct, frozen=True, kw_only=True):
    """The place of a journal that several brokers share, as one of them sees it."""

    directory: Path
    """The directory of what is fetched, for as long as this process runs."""
    scheduler: Scheduler
    call_soon: Callable[..., object]
    """See `Place`."""
    configuration: Configuration
    instance: str
    """The name that this start of the broker has drawn."""


class SharedStore(Protocol):
    """The ledger and the objects that several brokers share, opened for one follower."""

    ledger: Ledger

    async def follow(self) -> Follower:
        """Return a follower that knows all that the ledger has now; it owns ledger and objects from then on.

        Raises JournalDamaged, and OSError where ledger or objects are away.
        """

    def close(self) -> None:
        """End all sessions, where no follower owns them."""


OpenShared: TypeAlias = Callable[[], Coroutine[Any, Any, SharedStore]]
"""Opens what is shared. Raises ServerError where another try would end in the same way, and OSError where not."""
ShareJournal: TypeAlias = Callable[[SharedPlace], OpenShared]
"""Is called once in the life of a process, which never forgets how far it has seen the log."""
