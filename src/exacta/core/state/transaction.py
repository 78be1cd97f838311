"""A transactional id, and its open or last transaction."""

from enum import Enum

from msgspec import Struct, field

from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMEOUT_MS, PartitionId, ProducerEpoch, ProducerId


class Phase(Enum):
    """Where a transactional id stands. Ending is one event, so nothing is ever half ended (decision D2)."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


class KeptTransaction(Struct, frozen=True, array_like=True):
    """The pair and time-out with which an open transaction was begun, where its id has another holder by now."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    transaction_timeout_ms: int


class Transactional(Struct, array_like=True):
    """A transactional id: who holds it, and its open or last transaction.

    The previous pair is valid for one more InitProducerId of the same client (KIP-360); -1 where a takeover happened.
    Where the end of a transaction made the present pair, and nothing has begun under that (`bumped_by_end`), it also
    names the transaction.

    A transaction that was kept when its id got another holder (KIP-939) has the pair of who wrote it until it ends.
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    transaction_timeout_ms: int
    phase: Phase = Phase.EMPTY
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    previous_producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    start_ms: int = -1
    last_update_ms: int = -1
    partitions: set[PartitionId] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    bumped_by_end: bool = False
    kept: KeptTransaction | None = None
    client_id: str = ""
    """Whose it is, as that client said when it initialised; empty where nobody has noted it."""
    client_host: str = ""

    @property
    def open_pair(self) -> tuple[ProducerId, ProducerEpoch]:
        """Return the pair of the open transaction's records, which a kept one does not share with its holder."""
        if self.kept is not None:
            return self.kept.producer_id, self.kept.producer_epoch
        return self.producer_id, self.producer_epoch

    @property
    def open_timeout_ms(self) -> int:
        """Return the time-out of the open transaction."""
        return self.transaction_timeout_ms if self.kept is None else self.kept.transaction_timeout_ms

    @property
    def has_unused_pair(self) -> bool:
        """Whether nothing has begun or ended under the present pair yet."""
        return self.phase is Phase.EMPTY or self.bumped_by_end

    @property
    def deadline_ms(self) -> int | None:
        """Return when the open transaction is aborted; None: never, it takes part in a two-phase commit (KIP-939)."""
        if self.open_timeout_ms == NO_TIMEOUT_MS:
            return None
        return self.start_ms + self.open_timeout_ms
