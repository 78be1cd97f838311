"""The ledger: who leads a shared log, the log's tail, and the catalog of the objects that are the rest of it."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from exacta.ports.journal import Buffer, Failed


class Head(NamedTuple):
    """The state of the lead and of the log's tail, as the ledger has it."""

    epoch: int
    """The number of leaders that there have been; 0: nobody has led yet."""
    leader: int | None
    """The node id of the leader of this epoch."""
    beat: int
    """A number that the leader moves while it lives and appends nothing."""
    durable: int
    """A position: the leader has been told that all before it is durable."""
    tail_from: int
    """The position at which the tail begins; what lies before it is in objects."""
    catalog: int
    """The version of the catalog."""
    now_ms: int
    """The time of the ledger's clock in milliseconds since 1970, to be compared with a broker's own."""


class TailGroup(NamedTuple):
    """A group of the tail: its bytes are those of a segment file (`journal-format.md`), header included."""

    position: int
    end: int
    epoch: int
    """The epoch of the leader that has appended it."""
    durable: int
    """A position: its leader had been told, before it appended this group, that all before this is durable."""
    catalog: int
    """The version of the catalog that its leader knew. A reader of the group must know it, too."""
    body: Buffer


class Appended(NamedTuple):
    """The call is durable, and its epoch was the present one when it was made so."""


class Superseded(NamedTuple):
    """Nothing was done: another broker leads, in this epoch, or has done what was to be done."""

    epoch: int


class Claimed(NamedTuple):
    """The lead is taken, in this epoch. What the ledger has shown of the tail, and shows from now on, is durable."""

    epoch: int


class Kind(IntEnum):
    """The kinds of objects in the catalog."""

    WRITTEN = 0
    """A segment as it was written."""
    CLEANED = 1
    """The rest of neighbouring segments that cleaning has left."""
    COMPACTED = 2
    """The beginnings of streams, as compaction has left them."""
    SNAPSHOT = 3
    """The state as of the position `end`."""


class CatalogEntry(NamedTuple):
    """An object that is a part of the log, and the object of its index (`key` with `.index` behind it), if it has one.

    `base` and `end` are positions. A compacted segment has its number as `base`. `generation` says how often a segment
    was cleaned. `last_checksum` belongs to the last group before `end`. The sizes are in bytes; `index_bytes` is 0 for
    what has no index. `checksum` is the CRC-32C of the whole object, `index_checksum` of the index.
    """

    key: str
    kind: Kind
    base: int
    end: int
    generation: int
    last_checksum: int
    size: int
    checksum: int
    index_bytes: int = 0
    index_checksum: int = 0


class CatalogChange(NamedTuple):
    """A change of the catalog by the leader; it is made whole or not at all.

    Each key in `added` must have been intended (`Ledger.intend`), and its intent not swept. `removed` are keys of
    present entries. `tail_from` is where the tail begins from now on; None: where it did.
    """

    added: Sequence[CatalogEntry] = ()
    removed: Sequence[str] = ()
    tail_from: int | None = None


class CatalogSeen(NamedTuple):
    """The catalog as of a version: all present entries, by kind, base and generation."""

    version: int
    tail_from: int
    entries: Sequence[CatalogEntry]


class SharedBroker(NamedTuple):
    """A broker of the cluster, as it announces itself."""

    node_id: int
    instance: str
    """A name that each start of a broker draws at random."""
    about: bytes
    """The facts that other brokers are to know (addresses, rack), opaque."""
    catalog: int
    """The version of the catalog that it knows: it reads no object that was removed before."""
    position: int
    """Up to where it has followed the log."""


class BrokerSeen(NamedTuple):
    """A broker of the cluster, and how long ago it has announced itself, in milliseconds of the ledger's clock."""

    broker: SharedBroker
    age_ms: int


T = TypeVar("T")
Done: TypeAlias = Callable[[T | Failed], None]
Guarded: TypeAlias = Callable[[T | Superseded | Failed], None]

SWEEP_AFTER_MS = 3_600_000
"""An intent is swept when it is this old, and a removed object when it was removed this long ago."""
GONE_AFTER_MS = 60_000
"""A broker that has not announced itself for so long is taken for gone: nothing waits for it any more."""


class Ledger(Protocol):
    """Keep the head, the tail and the catalog of one log.

    Threads and callbacks are as for `exacta.ports.journal`: every method is called on the event-loop thread, returns at
    once, and calls back there, once, and never from inside the call. `Failed` says that nobody knows whether the call
    was carried out: the reply was lost, or came too late. Nothing that was asked in an epoch may be answered after it
    until that epoch has been confirmed once more, or left. Calls may overtake one another, but for appends.
    """

    # --- what the leader does -----------------------------------------------------------------------------------------

    def append(self, group: TailGroup, done: Guarded[Appended]) -> None:
        """Append a group in its epoch, at the end of the tail, and make it durable.

        `Superseded` where the epoch is not the present one, or the tail does not end at its position. At most one
        append may be in flight. The epoch is looked up after everything that excludes a claim of the lead.
        """

    def confirm(self, epoch: int, done: Guarded[Appended]) -> None:
        """Make something durable that changes nothing, in this epoch, as `append` does.

        `Appended` proves that nobody has led later than `epoch` at some moment after this call, and that whatever this
        ledger has shown of the tail so far is durable. Reading alone proves neither.
        """

    def beat(self, epoch: int, durable: int, done: Guarded[Appended]) -> None:
        """Show that the leader lives, and up to where it was told that all is durable."""

    def accept_loss(self, epoch: int, end: int, done: Guarded[Appended]) -> None:
        """Let the log be durable up to `end` and no further, though its leader was told of more: that is lost."""

    def resign(self, epoch: int) -> None:
        """Let the others take the lead at once. Nothing is appended in this epoch any more."""

    # --- what every broker does ---------------------------------------------------------------------------------------

    def found(self, about: bytes, done: Done[bytes]) -> None:
        """Note what the cluster is founded with (its id, its secret), unless it was founded; hand out what is noted.

        The bytes are opaque, at most 4 KiB, and only `found_again` changes them. Of several first brokers one founds
        the cluster.
        """

    def found_again(self, epoch: int, about: bytes, closes: bool, done: Guarded[Appended]) -> None:
        """Note, in this epoch, what the cluster is founded with from now on.

        If it `closes`, the log has gone elsewhere: nobody claims the lead any more.
        """

    def read_head(self, done: Done[Head]) -> None:
        """Read the head."""

    def read_tail(self, position: int, max_bytes: int, done: Done[Sequence[TailGroup]]) -> None:
        """Read groups from this position on, in order, at most `max_bytes` of them, but one if there is one.

        Empty where none begins there: the tail ends there, or begins later (see `Head.tail_from`).
        `Failed` also says that the ledger's database may have been replaced, maybe by one that has not all that was
        shown: groups that were shown before, and are not known to be durable, must be read again. Until then neither a
        claim nor a confirm succeeds.
        """

    def read_body(self, position: int, start: int, size: int, done: Done[bytes]) -> None:
        """Read a part of the body of the group at this position; empty where it is no longer in the tail."""

    def await_lead(self, done: Done[None]) -> None:
        """Call back when the session of the present leader has ended, or there is none. At most one call waits."""

    def claim(self, seen: Head, node_id: int, instance: str, done: Guarded[Claimed]) -> None:
        """Begin the epoch after the one that was seen, with this broker as its leader.

        An append in flight is in the tail by then, or is refused. `Superseded` where another was faster, and where the
        log has gone elsewhere (`found_again`).
        """

    def on_hint(self, hinted: Callable[[], None]) -> None:
        """Call back whenever a leader has said that there is more to read. Hints may be lost. To be called once."""

    def hint(self) -> None:
        """Tell the other brokers that there is more to read."""

    def announce(self, broker: SharedBroker, done: Guarded[Appended]) -> None:
        """Say that this broker lives. `Superseded(0)`: another instance with its node id does.

        An instance lives as long as the session in which it has announced itself lasts, and it is not gone
        (`GONE_AFTER_MS`). So the next instance of a broker that was killed need not wait.
        """

    def read_brokers(self, done: Done[Sequence[BrokerSeen]]) -> None:
        """Return all brokers that are not gone, by node id."""

    # --- the catalog --------------------------------------------------------------------------------------------------

    def read_catalog(self, done: Done[CatalogSeen]) -> None:
        """Read the catalog."""

    def intend(self, keys: Sequence[str], done: Done[None]) -> None:
        """Note that objects are about to be put under these keys, so that they are swept if nothing comes of it.

        The keys are those of entries. The object of an index is intended, swept and forgotten with its entry's key.
        """

    def change_catalog(self, epoch: int, change: CatalogChange, done: Guarded[int]) -> None:
        """Change the catalog in this epoch, and hand out its new version.

        `Superseded` also where the intent of an added key was swept, or a removed one is no longer there. Groups of the
        tail before `tail_from` go as soon as every broker that is not gone knows this version. Where the tail has no
        group, `tail_from` may lie beyond its end: the log begins with objects that were written elsewhere.
        """

    def sweep(self, done: Done[Sequence[str]]) -> None:
        """Give up old intents, and name the objects that can be deleted; each is named until `forget` is told of it.

        The objects of an intent that was given up can be deleted, since `change_catalog` will not take them any more.
        So can those that were removed in a version that all brokers that are not gone have seen.
        """

    def forget(self, keys: Sequence[str], done: Done[None]) -> None:
        """Forget these objects: they are deleted."""

    # --- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the session, and with it the lead; nobody is called back any more."""
