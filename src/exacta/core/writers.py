"""The writer of a batch, as far as a repeat of the batch can be told by it."""

from msgspec import Struct

from exacta.core.ids import NO_PRINCIPAL, PrincipalName, ProducerEpoch, ProducerId, TransactionVersion, WriterId


class IdempotentWriter(Struct, frozen=True, kw_only=True):
    """A producer of KIP-98: its batches follow each other by their sequences, which `core.log.sequence` checks.

    `transactional_id` is None where the batch belongs to no transaction, also where its producer has one.
    """

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int
    version: TransactionVersion = TransactionVersion.V1
    transactional_id: str | None = None


class NamedWriter(Struct, frozen=True, kw_only=True):
    """A writer that has a name: the sequences of its messages grow, with gaps (`core.log.repeats`).

    The sequences are those of the first and of the last message of the batch. `is_part` is true of each part of a large
    message but the last one: all parts have the message's sequence, which counts when the message is whole.
    """

    name: str
    first_sequence: int
    last_sequence: int
    is_part: bool = False
    principal: PrincipalName = NO_PRINCIPAL


class NamelessWriter(Struct, frozen=True, kw_only=True):
    """A writer that its user has not named: its repeats are told within a transaction (`core.log.nameless_sequence`).

    `number` is below NO_WRITER_ID, and no other writer's. `sequence` is the highest one in the batch. `is_back` is true
    if the writer had another connection before, over which it may have sent the batch already. `is_part` is as for a
    named writer.
    """

    number: WriterId
    sequence: int
    is_back: bool
    is_part: bool = False


Writer = IdempotentWriter | NamedWriter | NamelessWriter
