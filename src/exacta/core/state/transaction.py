"""A transaction, and a transactional id, which holds one transaction at a time.

A transaction is a thing of its own (decision 0027). It has an id that is never given out again, and it ends as a whole.
Mostly a transactional id owns it. A transaction that nobody owns is a *handle*: everybody who knows its id may write
into it and end it. A transactional id's *pair* is the producer id and epoch that its holder presents. A transaction is
*prepared* when its pair is not the pair of the holder of its transactional id any more (KIP-939). A *joint* transaction
is both: a transactional id owns it, and everybody who knows its id may write into it and end it (decision 0038).
"""

import re
from enum import Enum
from typing import Protocol

from msgspec import Struct, field

from exacta.core.ids import (
    NO_PRINCIPAL,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    Cause,
    PartitionId,
    PrincipalName,
    ProducerEpoch,
    ProducerId,
    SubscriptionKey,
    TransactionId,
)
from exacta.core.values.transactions import Phase


class Conclusion(Enum):
    """A joint transaction was ended by its id, and the holder of its transactional id has not said so yet."""

    OF_WHAT_IT_WROTE = "OfWhatItWrote"
    """The holder has registered something with the transaction, so that its client is going to end it, too."""
    OF_NOTHING = "OfNothing"
    """The holder has registered nothing with it, so that its client may never mention it again."""


HANDLE_EPOCH = ProducerEpoch(0)
"""The epoch of all that is written by the transaction's id, under the last one of its producer ids."""


class Transaction(Struct, array_like=True):
    """An open transaction: under which producer ids its records lie, and what takes part in it."""

    transaction_id: TransactionId
    producer_ids: tuple[ProducerId, ...]
    """The producer ids under which its records lie: one, or two where it is joint. Then the first one is its owner's,
    and under the second one lies what is written by the transaction's id."""
    producer_epoch: ProducerEpoch
    """No record of the transaction is of a later epoch."""
    owner: str | None
    """The transactional id that it belongs to. None: it is a handle."""
    timeout_ms: int
    start_ms: int
    partitions: set[PartitionId] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    client_id: str = ""
    """Names the client that began a handle. The client of any other transaction is its owner's."""
    client_host: str = ""
    subscriptions: set[SubscriptionKey] = field(default_factory=set)
    """The subscriptions of which it has acknowledged messages, also those that are gone by now."""
    acknowledged_runs: int = 0
    """The number of runs of messages that it was given to acknowledge."""
    has_owners_part: bool = True
    """False: it is a handle that a transactional id has joined, whose holder has registered nothing with it yet."""
    principal: PrincipalName = NO_PRINCIPAL
    """The principal of the client that began it."""

    @property
    def is_joint(self) -> bool:
        """Return whether a transactional id owns it, and everybody who knows its id may write into it and end it."""
        return len(self.producer_ids) > 1

    @property
    def is_known_by_id(self) -> bool:
        """Return whether everybody who knows its id may write into it and end it: it is a handle, or joint."""
        return self.owner is None or self.is_joint

    @property
    def participants(self) -> int:
        """Return how many partitions, groups and subscriptions take part in it."""
        return len(self.partitions) + len(self.groups) + len(self.subscriptions)

    @property
    def pair(self) -> tuple[ProducerId, ProducerEpoch]:
        """Return the pair that names the transaction to Kafka's clients and tools."""
        return self.producer_ids[0], self.producer_epoch

    @property
    def deadline_ms(self) -> int | None:
        """Return when it is aborted. None: never, since it takes part in a two-phase commit (KIP-939)."""
        return None if self.timeout_ms == NO_TIMEOUT_MS else self.start_ms + self.timeout_ms


class TransactionalId(Struct, array_like=True):
    """A transactional id: who holds it, which transaction it has open, and how its last one ended.

    The previous pair is valid for one more InitProducerId of the same client (KIP-360). It is -1 after a takeover.
    The end of a transaction may have made the present pair, and nothing may have begun under that (`bumped_by_end`).
    Then the previous pair also names the transaction that ended.
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    transaction_timeout_ms: int
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    previous_producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    last_update_ms: int = -1
    open: TransactionId | None = None
    last_committed: bool | None = None
    """The outcome of the last transaction. None: none has ended since the present holder initialised the id."""
    last_start_ms: int = -1
    """The time at which the last transaction that has ended began."""
    bumped_by_end: bool = False
    client_id: str = ""
    """The client that initialised the id, in its own words; empty where nobody has noted it."""
    client_host: str = ""
    concluded: Conclusion | None = None
    """Says that its holder has not heard of its last transaction's end: that was joint, and ended by its id."""
    principal: PrincipalName = NO_PRINCIPAL
    """The principal of the client that initialised the id."""

    @property
    def pair(self) -> tuple[ProducerId, ProducerEpoch]:
        """Return the pair that the holder presents."""
        return self.producer_id, self.producer_epoch

    @property
    def previous_pair(self) -> tuple[ProducerId, ProducerEpoch]:
        """Return the pair that the same client held before; -1 where there is none."""
        return self.previous_producer_id, self.previous_producer_epoch

    @property
    def phase(self) -> Phase:
        """Return where the id stands, in the words of Kafka's coordinator."""
        if self.open is not None:
            return Phase.ONGOING
        if self.last_committed is None:
            return Phase.EMPTY
        return Phase.COMPLETE_COMMIT if self.last_committed else Phase.COMPLETE_ABORT

    @property
    def has_unused_pair(self) -> bool:
        """Return whether nothing has begun or ended under the present pair yet."""
        return self.bumped_by_end or (self.open is None and self.last_committed is None)

    def has_prepared(self, transaction: Transaction) -> bool:
        """Return whether the id's transaction is prepared: its holder has not the pair any more that began it."""
        return self.producer_epoch != transaction.producer_epoch or self.producer_id not in transaction.producer_ids


class EndedHandle(Struct, frozen=True, array_like=True):
    """The outcome of a handle or joint transaction, for clients that ask again. It is kept for a time (`Limits`)."""

    transaction_id: TransactionId
    committed: bool
    timeout_ms: int
    start_ms: int
    ended_ms: int
    producer_ids: tuple[ProducerId, ...]
    producer_epoch: ProducerEpoch
    cause: Cause
    client_id: str = ""
    """The client that asked for the end; empty where its owner, time or a loss ended it."""
    client_host: str = ""
    owner: str | None = None
    """The transactional id that it belonged to. None: it was a handle."""


class Named(Protocol):
    """A transaction, or an event of one."""

    @property
    def transaction_id(self) -> TransactionId:
        """Return the id of the transaction."""

    @property
    def owner(self) -> str | None:
        """Return the transactional id that it belongs to. None: it is a handle."""


def name_of(transaction: Named) -> str:
    """Return the name by which people and tools know it: its transactional id, or what a handle is called."""
    return handle_name(transaction.transaction_id) if transaction.owner is None else transaction.owner


def handle_name(transaction_id: TransactionId) -> str:
    """Return the name of a handle, in the form in which Pulsar writes the ids of transactions (PIP-31)."""
    return f"TxnID(0,{transaction_id})"


def handle_named(name: str) -> TransactionId | None:
    """Return the id of the handle that has this name, whether there is one or not; None for any other name."""
    found = _HANDLE.fullmatch(name)
    return None if found is None else TransactionId(int(found[1]))


_HANDLE = re.compile(r"TxnID\(0,(0|[1-9][0-9]{0,18})\)", re.ASCII)
