"""Planted bugs of the engine: who is answered when."""

from collections.abc import Callable

from exacta.core import snapshot
from exacta.core.commands import AbortAfterLoss, FenceAfterLoss
from exacta.core.ids import ProducerId, TransactionId
from exacta.core.state.state import State
from exacta.core.transactions.loss import fences_after_loss
from exacta.engine import answers_ahead, recovery
from exacta.engine.answers_ahead import AnswersAhead, Foundation
from exacta.engine.commit_group import Wait
from exacta.engine.journal_writer import JournalWriter
from exacta.engine.visible import visible_changes
from simulation.canaries import Replacements, canary


@canary(
    "an answer goes out before what it promises is durable (Kafka with acks and without flushes)",
    shows=r"lost write: .* which is committed|refused: .*: OUT_OF_ORDER_SEQUENCE_NUMBER",
)
def answer_before_durable() -> Replacements:
    def release(self: JournalWriter, release: Callable[[], None], wait: Wait = Wait.SYNC) -> None:
        release()

    return [(JournalWriter, "release", release)]


@canary(
    "a write is answered ahead of its sync although its transaction's begin is not durable (decision 0016)",
    shows=r"lost write: .* which is committed|a transaction commits that has lost",
)
def begin_not_awaited() -> Replacements:
    # What is synced as soon as it is written is hardly ever missed.
    return [
        (AnswersAhead, "foundation", lambda self, transaction_id: Foundation.DURABLE),
        (AnswersAhead, "sync_begins", lambda self, written: None),
    ]


@canary(
    "transactions that lost writes with the machine go on (decision 0016)",
    shows=r"lost write: .* which is committed|apart: .* the same record|a transaction commits that has lost",
)
def loss_not_aborted() -> Replacements:
    return [(recovery, "fences_after_loss", lambda state: [])]


@canary(
    "only transactions that are found open are taken to have lost writes (decision 0022)",
    shows=r"lost write: .* which is committed|apart: .* the same record|a transaction commits that has lost",
)
def unseen_not_fenced() -> Replacements:
    def found_open(state: State) -> list[FenceAfterLoss | AbortAfterLoss]:
        held, fences = state.transactional_ids, fences_after_loss(state)
        return [
            each for each in fences if isinstance(each, AbortAfterLoss) or held[each.transactional_id].open is not None
        ]

    return [(recovery, "fences_after_loss", found_open)]


@canary(
    "however long a producer was idle, its next transaction needs no durable begin (decision 0022)",
    shows=r"lost write: .* which is committed|apart: .* the same record|a transaction commits that has lost",
)
def always_unseen() -> Replacements:
    return [(answers_ahead, "may_begin_unseen", lambda held, now_ms: True)]


@canary(
    "a handle that lost writes with the machine is left open, and commits (decision 0027)",
    shows=r"lost write: .* which is committed|2: .* may be lost|a handle commits that has lost",
)
def lost_handle_commits() -> Replacements:
    def of_ids(state: State) -> list[FenceAfterLoss | AbortAfterLoss]:
        return [each for each in fences_after_loss(state) if isinstance(each, FenceAfterLoss)]

    return [(recovery, "fences_after_loss", of_ids)]


@canary(
    "a restart goes on with the ids that the journal has last, not with those behind what was reserved (0027)",
    shows=r"ids: .* a second time|9: .* comes next",
)
def id_given_out_twice() -> Replacements:
    recovered = snapshot.after_recovery

    def after_recovery(state: State, **options: bool) -> None:
        recovered(state, **options)
        volatile = state.volatile
        holders = (each.producer_id for each in state.transactional_ids.values())
        written = (producer_id for each in state.transactions.values() for producer_id in each.producer_ids)
        ended = (producer_id for each in state.ended_handles.values() for producer_id in each.producer_ids)
        last = max([*state.transactions, *state.ended_handles], default=-1)
        volatile.next_transaction_id = TransactionId(last + 1)
        volatile.next_producer_id = ProducerId(max([*holders, *written, *ended], default=-1) + 1)

    return [(recovery, "after_recovery", after_recovery)]


@canary(
    "the begin of a handle is answered before the reservation of its ids is durable (decision 0027)",
    shows=r"ids: .* a second time",
)
def reservation_not_awaited() -> Replacements:
    return [(AnswersAhead, "reservation", lambda self: Foundation.DURABLE)]


@canary("a restart begins with a clock that is behind what was noted (decision 0018)", shows=r"8: .* was noted")
def clock_goes_back() -> Replacements:
    return [(recovery, "_ahead", lambda clock, by_ms: clock)]


@canary(
    "a restart forgets what partitions know of their producers (KAFKA-9144; seen in another broker)",
    shows=r"duplicate: |1: BatchAppended|8: what was recovered .* is not the fold",
)
def producers_forgotten() -> Replacements:
    recovered = snapshot.after_recovery

    def after_recovery(state: State, **options: bool) -> None:
        recovered(state, **options)
        for partition in state.partitions.values():
            partition.producers.clear()

    return [(recovery, "after_recovery", after_recovery)]


@canary(
    "a restart forgets the deadlines of open transactions: readers wait for ever (KIP-890's hanging transactions)",
    shows=r"7: nothing will ever end",
)
def deadlines_forgotten() -> Replacements:
    return [(recovery, "timers_after_recovery", lambda state, now_ms: [])]


@canary("readers are shown what is not durable yet", shows=r"4: readers of partition .* are shown")
def shown_before_durable() -> Replacements:
    flush = JournalWriter._flush

    def shows(self: JournalWriter) -> None:
        changes = visible_changes(self._state, self.gathering.touched)
        flush(self)
        self._show(changes)

    return [(JournalWriter, "_flush", shows)]
