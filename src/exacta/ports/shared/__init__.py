"""The places of a log that several brokers share: a ledger, which is a database's part, and an object store.

The *ledger* has what must be compared and appended: who leads, the end of the log (its *tail*), and the *catalog*,
which says which objects are the rest of the log. The *object store* has these objects: sealed segments, their indexes,
and snapshots. An object is written once, under a key that nobody else can have chosen, and never again.

Safety rests on the ledger alone. Each append and each change of the catalog names the epoch of the leader that makes
it, and is refused once a later epoch has begun. Clocks only say when to suspect a leader.
"""

from exacta.ports.shared.ledger import (
    Appended,
    BrokerSeen,
    CatalogChange,
    CatalogEntry,
    CatalogSeen,
    Claimed,
    Head,
    Kind,
    Ledger,
    SharedBroker,
    Superseded,
    TailGroup,
)
from exacta.ports.shared.objects import Missing, ObjectStore, StoreFailed

__all__ = [
    "Appended",
    "BrokerSeen",
    "CatalogChange",
    "CatalogEntry",
    "CatalogSeen",
    "Claimed",
    "Head",
    "Kind",
    "Ledger",
    "Missing",
    "ObjectStore",
    "SharedBroker",
    "StoreFailed",
    "Superseded",
    "TailGroup",
]
