"""The parts of a server that its owner may exchange."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from exacta.adapters.clock import Clock
from exacta.server.fronts import FRONTS, FrontRow
from exacta.server.journals import JOURNALS, LOCAL, OpenJournal, OpenShared, SharedPlace, ShareJournal


def share_in_postgres(place: SharedPlace) -> OpenShared:
    """Share a journal in PostgreSQL and an object store; needs the extra `cluster`. Raises ServerError."""
    from exacta.server.shared_stores import in_postgres  # loads what a broker alone does not need

    return in_postgres(place)


class Seams(Struct, frozen=True, kw_only=True):
    """The parts; the embedded broker exchanges some for a test's faults and its time."""

    clock: Callable[[], Clock] = Clock
    journal: OpenJournal = JOURNALS[LOCAL]
    """A function that opens the journal of a broker alone."""
    shared: ShareJournal = share_in_postgres
    """A function that makes what opens the journal of several brokers."""
    reserve_bytes: int = 0
    """The most that is kept of the disk for when it is full."""
    fronts: Sequence[FrontRow] = FRONTS
    """The table of the fronts; those are made that have doors."""
    loopback_has_share: bool = True
    """False: clients on this machine may fill the tables of the state alone (`exacta.core.values.usage`)."""
