"""The tables of a ledger's database: one value for each moment, and what each call of the ledger makes of it.

Each function below is one transaction. It gets the tables as the transaction finds them, and returns the tables as it
leaves them, with its answer. What has changed nothing returns the very tables that it got. It knows nothing of
sessions, of time that passes, or of faults (see `database.py`).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from exacta.ports.shared.ledger import (
    GONE_AFTER_MS,
    SWEEP_AFTER_MS,
    Appended,
    BrokerSeen,
    CatalogChange,
    CatalogEntry,
    CatalogSeen,
    Claimed,
    Head,
    SharedBroker,
    Superseded,
    TailGroup,
)

T = TypeVar("T")


class Removed(Struct, frozen=True):
    """The version of the catalog in which an object was removed, and the time."""

    version: int
    at_ms: int


class Tables(Struct, frozen=True, kw_only=True):
    """Everything that the database keeps, at one moment."""

    about: bytes | None = None
    is_closed: bool = False
    """The log has gone elsewhere."""
    epoch: int = 0
    leader: int | None = None
    lock_key: int = 0
    """The leader's session holds the lock of this key for as long as it lasts."""
    beat: int = 0
    durable: int = 0
    tail: tuple[TailGroup, ...] = ()
    tail_from: int = 0
    tail_from_catalog: int = 0
    """The version of the catalog with which the tail begins where it does."""
    catalog: int = 0
    entries: Mapping[str, CatalogEntry] = {}
    intents: Mapping[str, int] = {}
    """The time at which each key was intended."""
    removed: Mapping[str, Removed] = {}
    garbage: tuple[str, ...] = ()
    """The keys of the objects that can be deleted."""
    brokers: Mapping[int, tuple[SharedBroker, int]] = {}
    """The brokers by node id, each with the time at which it has announced itself."""

    @property
    def end(self) -> int:
        """The position at which the tail ends."""
        return self.tail[-1].end if self.tail else self.tail_from


Written: TypeAlias = tuple[Tables, T]

# --- what the leader does ---------------------------------------------------------------------------------------------


def append(tables: Tables, group: TailGroup) -> Written[Appended | Superseded]:
    """See `Ledger.append`."""
    if not group.epoch == tables.epoch > 0 or group.position != tables.end:
        return tables, Superseded(tables.epoch)
    return replace(tables, tail=(*tables.tail, group)), Appended()


def confirm(tables: Tables, epoch: int) -> Written[Appended | Superseded]:
    """See `Ledger.confirm`; something is written though nothing is changed."""
    if epoch != tables.epoch:
        return tables, Superseded(tables.epoch)
    return replace(tables), Appended()


def beat(tables: Tables, epoch: int, durable: int) -> Written[Appended | Superseded]:
    """See `Ledger.beat`."""
    if not epoch == tables.epoch > 0:
        return tables, Superseded(tables.epoch)
    return replace(tables, beat=tables.beat + 1, durable=max(tables.durable, durable)), Appended()


def accept_loss(tables: Tables, epoch: int, end: int) -> Written[Appended | Superseded]:
    """See `Ledger.accept_loss`."""
    if not epoch == tables.epoch > 0:
        return tables, Superseded(tables.epoch)
    return replace(tables, durable=min(tables.durable, end)), Appended()


def claim(tables: Tables, seen_epoch: int, node_id: int, lock_key: int) -> Written[Claimed | Superseded]:
    """See `Ledger.claim`."""
    if seen_epoch != tables.epoch or tables.is_closed:
        return tables, Superseded(tables.epoch)
    epoch = tables.epoch + 1
    return replace(tables, epoch=epoch, leader=node_id, lock_key=lock_key), Claimed(epoch)


def change_catalog(tables: Tables, epoch: int, change: CatalogChange, now_ms: int) -> Written[int | Superseded]:
    """See `Ledger.change_catalog`."""
    added = {entry.key: entry for entry in change.added}
    if not epoch == tables.epoch > 0 or not added.keys() <= tables.intents.keys():
        return tables, Superseded(tables.epoch)
    if not set(change.removed) <= tables.entries.keys():
        return tables, Superseded(tables.epoch)
    catalog = tables.catalog + 1
    moved = change.tail_from is not None
    changed = replace(
        tables,
        catalog=catalog,
        entries=_without(tables.entries, change.removed) | added,
        intents=_without(tables.intents, added),
        removed={**tables.removed, **{key: Removed(catalog, now_ms) for key in change.removed}},
        tail_from=change.tail_from if change.tail_from is not None else tables.tail_from,
        tail_from_catalog=catalog if moved else tables.tail_from_catalog,
    )
    return _cut_tail(changed, now_ms), catalog


def _without(mapping: Mapping[str, T], keys: Sequence[str] | Mapping[str, object]) -> dict[str, T]:
    return {key: value for key, value in mapping.items() if key not in keys}


# --- what every broker does -------------------------------------------------------------------------------------------


def found(tables: Tables, about: bytes) -> Written[bytes]:
    """See `Ledger.found`."""
    if tables.about is not None:
        return tables, tables.about
    return replace(tables, about=about), about


def found_again(tables: Tables, epoch: int, about: bytes, *, is_closed: bool) -> Written[Appended | Superseded]:
    """See `Ledger.found_again`."""
    if not epoch == tables.epoch > 0:
        return tables, Superseded(tables.epoch)
    return replace(tables, about=about, is_closed=is_closed), Appended()


def announce(
    tables: Tables, broker: SharedBroker, living: Collection[str], now_ms: int
) -> Written[Appended | Superseded]:
    """See `Ledger.announce`; `living` are the instances that have a session."""
    before, at_ms = tables.brokers.get(broker.node_id, (broker, 0))
    if before.instance != broker.instance and before.instance in living and now_ms - at_ms < GONE_AFTER_MS:
        return tables, Superseded(0)
    announced = replace(tables, brokers={**tables.brokers, broker.node_id: (broker, now_ms)})
    return _cut_tail(announced, now_ms), Appended()


def intend(tables: Tables, keys: Sequence[str], now_ms: int) -> Written[None]:
    """See `Ledger.intend`."""
    return replace(tables, intents={**tables.intents, **dict.fromkeys(keys, now_ms)}), None


def sweep(tables: Tables, now_ms: int) -> Written[Sequence[str]]:
    """See `Ledger.sweep`."""
    seen = _seen_by_all(tables, now_ms)
    given_up = [key for key, at_ms in tables.intents.items() if now_ms - at_ms >= SWEEP_AFTER_MS]
    unread = [
        key
        for key, removed in tables.removed.items()
        if removed.version <= seen and now_ms - removed.at_ms >= SWEEP_AFTER_MS
    ]
    garbage = (*tables.garbage, *given_up, *unread)
    if garbage == tables.garbage:
        return tables, garbage
    swept = replace(
        tables,
        intents=_without(tables.intents, given_up),
        removed=_without(tables.removed, unread),
        garbage=garbage,
    )
    return _cut_tail(swept, now_ms), garbage


def forget(tables: Tables, keys: Sequence[str]) -> Written[None]:
    """See `Ledger.forget`."""
    return replace(tables, garbage=tuple(key for key in tables.garbage if key not in keys)), None


def _seen_by_all(tables: Tables, now_ms: int) -> int:
    """Return the version of the catalog that every broker knows that is not gone."""
    return min((seen.broker.catalog for seen in brokers(tables, now_ms)), default=tables.catalog)


def _cut_tail(tables: Tables, now_ms: int) -> Tables:
    if _seen_by_all(tables, now_ms) < tables.tail_from_catalog:
        return tables
    return replace(tables, tail=tuple(group for group in tables.tail if group.position >= tables.tail_from))


# --- what only looks --------------------------------------------------------------------------------------------------


def head(tables: Tables, now_ms: int) -> Head:
    """See `Ledger.read_head`."""
    return Head(tables.epoch, tables.leader, tables.beat, tables.durable, tables.tail_from, tables.catalog, now_ms)


def groups(tables: Tables, position: int, max_bytes: int) -> Sequence[TailGroup]:
    """See `Ledger.read_tail`."""
    found: list[TailGroup] = []
    size = 0
    for group in tables.tail:
        if group.position == position:
            size += len(group.body)
            if found and size > max_bytes:
                break
            found.append(group)
            position = group.end
    return found


def body(tables: Tables, position: int, start: int, size: int) -> bytes:
    """See `Ledger.read_body`."""
    for group in tables.tail:
        if group.position == position:
            return bytes(group.body[start : start + size])
    return b""


def brokers(tables: Tables, now_ms: int) -> list[BrokerSeen]:
    """See `Ledger.read_brokers`."""
    return [
        BrokerSeen(broker, now_ms - at_ms)
        for _, (broker, at_ms) in sorted(tables.brokers.items())
        if now_ms - at_ms < GONE_AFTER_MS
    ]


def catalog(tables: Tables) -> CatalogSeen:
    """See `Ledger.read_catalog`."""
    entries = sorted(tables.entries.values(), key=lambda each: (each.kind, each.base, each.generation, each.key))
    return CatalogSeen(tables.catalog, tables.tail_from, entries)
