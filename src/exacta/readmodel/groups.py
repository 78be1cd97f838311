"""The lag of groups as it is told."""

from msgspec import Struct


class BlockingTransaction(Struct, frozen=True, kw_only=True):
    """An open transaction that holds readers of committed data back at its first offset."""

    transactional_id: str
    first_offset: int
    open_for_ms: int


class Lag(Struct, frozen=True, kw_only=True):
    """One partition of a group."""

    topic: str
    partition: int
    committed_offset: int | None
    """None: the group has no position there yet."""
    commit_is_pending: bool = False
    """An open transaction moves the position if it commits (KIP-447)."""
    log_start_offset: int | None = None
    last_stable_offset: int
    high_watermark: int
    visible_end_offset: int | None = None
    """The end of the last record that a read_committed reader gets."""
    unread: int = 0
    """The records that a read_committed reader would get now. On another cluster than an Exacta these are offsets."""
    held_back: int = 0
    """The records, or offsets, that are behind an open transaction."""
    held_by: tuple[BlockingTransaction, ...] = ()
    """The oldest 100 open transactions that have written to the partition."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class AskLag(Struct, frozen=True, kw_only=True, tag="lag"):
    """The question how far a group is behind."""

    group: str


class GroupLag(Struct, frozen=True, kw_only=True):
    """The lag of a group, in each partition where it has a position, or will have one if an open transaction commits.

    If `exact`, it is counted in records. Else it is counted in offsets, and the records may be fewer.
    """

    group: str
    partitions: tuple[Lag, ...]
    exact: bool = True
    version: int = 1
