"""Planted bugs of producers, transactions and groups."""

from typing import Any

from msgspec.structs import replace

from exacta.core import decide
from exacta.core.apply import _APPLY
from exacta.core.commands import AppendBatch, CommitTransactionalOffsets, EndTransaction, InitProducerId
from exacta.core.events import MessagesAcknowledgedInTransaction, TransactionEnded, TransactionExtended
from exacta.core.groups import committing, offsets
from exacta.core.log import append, sequence
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.core.subscriptions import acknowledging, progress
from exacta.core.transactions import binding, handle, transaction
from exacta.core.transactions import ending as ending_room
from exacta.core.writers import IdempotentWriter
from simulation.canaries import Replacements, canary


@canary("a batch that is sent again is stored again (Redpanda 3039)", shows=r"duplicate: |1: BatchAppended")
def repeat_appended_twice() -> Replacements:
    check = sequence.check_sequence

    def accepts_repeats(known: Any, epoch: Any, first_sequence: int, limits: Any, *, version: Any) -> Any:
        if known is not None and known.batches and first_sequence <= known.batches[-1].last_sequence:
            return None
        return check(known, epoch, first_sequence, limits, version=version)

    def never(*args: object, **options: object) -> None:
        return None

    return [(append, "find_repeat", never), (append, "check_sequence", accepts_repeats)]


@canary(
    "a repeat is answered as out of order, so that its client sends it under a new epoch (Redpanda 3039)",
    shows=r"refused: .*: (OUT_OF_ORDER|DUPLICATE)_SEQUENCE_NUMBER",
)
def repeat_refused() -> Replacements:
    def never(*args: object, **options: object) -> None:
        return None

    return [(append, "find_repeat", never)]


@canary(
    "InitProducerId of a new instance does not abort what the old one left open (kfake)",
    shows=r"3: producer .* outside a transaction|6: .* joins a transaction",
)
def takeover_does_not_abort() -> Replacements:
    original = decide._DECIDE[InitProducerId]

    def init(state: State, command: InitProducerId, now_ms: int) -> Outcome:
        outcome: Outcome = original(state, command, now_ms)
        kept = tuple(event for event in outcome.events if not isinstance(event, TransactionEnded))
        return replace(outcome, events=kept)

    return [(decide._DECIDE, InitProducerId, init)]


@canary("InitProducerId does not bump the epoch, so that zombies go on", shows=r"6: ProducerBound.* does not fence")
def epoch_not_bumped() -> Replacements:
    return [(binding, "next_pair", lambda state, producer_id, producer_epoch: (producer_id, producer_epoch))]


@canary(
    "a late EndTxn ends the next transaction (KAFKA-17754)",
    shows=r"lost write: .* which is committed|torn transaction: |aborted read: ",
)
def late_end_ends_the_next() -> Replacements:
    original = decide._DECIDE[EndTransaction]

    def end(state: State, command: EndTransaction, now_ms: int) -> Outcome:
        held = state.transactional_ids.get(command.transactional_id)
        if held is not None and held.producer_id == command.producer_id:
            command = replace(command, producer_epoch=held.producer_epoch)
        outcome: Outcome = original(state, command, now_ms)
        return outcome

    return [(decide._DECIDE, EndTransaction, end)]


@canary(
    "a late Produce opens a transaction that nobody ends (KAFKA-14402)",
    shows=r"refused: .*: OUT_OF_ORDER_SEQUENCE_NUMBER|duplicate: |liveness: a transaction is open",
)
def late_produce_begins() -> Replacements:
    original = decide._DECIDE[AppendBatch]

    def produce(state: State, command: AppendBatch, now_ms: int) -> Outcome:
        writer = command.writer
        if isinstance(writer, IdempotentWriter):
            held = state.volatile.holder_by_producer.get(writer.producer_id)
            if held is not None:
                command = replace(command, writer=replace(writer, producer_epoch=held.producer_epoch))
        outcome: Outcome = original(state, command, now_ms)
        return outcome

    return [(decide._DECIDE, AppendBatch, produce)]


@canary("TxnOffsetCommit is taken from a member of an earlier generation (KIP-447)", shows=r"offset and data apart: ")
def offsets_not_fenced() -> Replacements:
    check = committing.check_committer

    def unfenced(state: State, commit: Any) -> Any:
        return None if isinstance(commit, CommitTransactionalOffsets) else check(state, commit)

    return [(offsets, "check_committer", unfenced)]


@canary(
    "offsets of an aborted transaction take effect (KAFKA-17507)",
    shows=r"offset and data apart: |8: |3: the offset of .* has taken effect",
)
def offsets_apart_from_data() -> Replacements:
    ended = _APPLY[TransactionEnded]

    def apply(state: State, event: TransactionEnded) -> None:
        if not event.committed:
            for group in state.groups.values():
                for topic, by_partition in group.pending.get(event.transaction_id, {}).items():
                    group.offsets.setdefault(topic, {}).update(by_partition)
        ended(state, event)

    return [(_APPLY, TransactionEnded, apply)]


@canary(
    "the epoch is bumped beyond its limit, and no new producer id is given (KAFKA-20090)",
    shows=r"6: .* passes the highest epoch",
)
def epoch_passes_the_limit() -> Replacements:
    def next_pair(state: State, producer_id: int, producer_epoch: int) -> tuple[int, int]:
        return producer_id, producer_epoch + 1

    return [(ending_room, "next_pair", next_pair), (binding, "next_pair", next_pair)]


@canary(
    "one partition of a transaction gets no marker (markers lost between brokers; KAFKA-16352)",
    shows=r"3: TransactionEnded.* leaves partition",
)
def marker_left_out() -> Replacements:
    ending = ending_room.ending

    def without_the_last(state: State, held: Any, **options: Any) -> TransactionEnded:
        event: TransactionEnded = ending(state, held, **options)
        return replace(event, markers=event.markers[:-1]) if len(event.markers) > 1 else event

    return [(transaction, "ending", without_the_last), (binding, "ending", without_the_last)]


@canary("anybody writes into __consumer_offsets, as into any topic", shows=r"internal topics: ")
def internal_topics_are_written_to() -> Replacements:
    return [(append, "INTERNAL_TOPICS", frozenset())]


@canary(
    "what joins a handle is not counted, so that its limit does not hold", shows=r"limits: .* of handles are counted"
)
def participants_not_counted() -> Replacements:
    original = _APPLY[TransactionExtended]

    def extended(state: State, event: TransactionExtended) -> None:
        before = state.volatile.handle_participants
        original(state, event)
        state.volatile.handle_participants = before

    return [(_APPLY, TransactionExtended, extended)]


@canary("one handle has more participants than one may have", shows=r"limits: a handle has \d+ participants")
def participants_without_a_limit() -> Replacements:
    original = handle.extension_in_handle

    def extension(state: State, held: Any, *, now_ms: int, **named: Any) -> Any:
        found = original(state, held, now_ms=now_ms, **named)
        if found is not Rejection.LIMIT_REACHED:
            return found
        [(kind, each)] = named.items()
        partitions, groups = ((each,) if kind == name else () for name in ("partition_id", "group_id"))
        return transaction.extended(held, partitions, groups, now_ms, (each,) if kind == "subscription" else ())

    return [(owner, "extension_in_handle", extension) for owner in (append, offsets, acknowledging)]


@canary(
    "the messages that a handle acknowledges are not counted, so that their limit does not hold",
    shows=r"limits: .* runs of transaction \d+ are counted",
)
def acknowledged_runs_not_counted() -> Replacements:
    def acknowledged(state: State, event: MessagesAcknowledgedInTransaction) -> None:
        key = (event.partition_id, event.name)
        progress.hold(state, key, event.transaction_id, event.runs, event.before)

    return [(_APPLY, MessagesAcknowledgedInTransaction, acknowledged)]
