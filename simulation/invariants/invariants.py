"""The invariants of docs/explanation/architecture.md, as functions over the state and the events that led to it.

Each function yields one sentence per violation, and derives its expectation from the events alone, the long way round,
so that it does not repeat what `decide` and `apply` believe. `violations` is all of them. They are for tests and the
simulation, not for the hot path: each call reads the whole log.
"""

from collections.abc import Iterator, Sequence, Set

from exacta.core.apply import apply
from exacta.core.ids import TransactionId
from exacta.core.snapshot import is_same
from exacta.core.state.state import State
from simulation.invariants.access import (
    keys_are_those_that_were_set,
    quotas_are_those_that_were_set,
    rules_are_those_that_were_made,
    who_got_every_right_at_once_was_the_first_user,
)
from simulation.invariants.bounds import tables_are_counted, tables_keep_their_bounds
from simulation.invariants.commits import commits_are_numbered
from simulation.invariants.groups import (
    group_epochs_grow,
    group_offsets_have_taken_effect,
    groups_are_durable,
    groups_expire_unused,
    groups_move_with_their_members,
)
from simulation.invariants.leaders import epochs_are_those_of_the_leaders
from simulation.invariants.log import (
    Acknowledged,
    Log,
    aborted_records_are_counted,
    acknowledged_once,
    broker_configs_are_the_last,
    internal_topics_are_empty,
    last_stable_offsets,
    partitions_have_one_topic,
    read_committed_is_exact,
    sequences_are_contiguous,
)
from simulation.invariants.principals import principals_are_those_that_began
from simulation.invariants.redeliveries import counts_are_those_that_were_written, counts_do_not_fall
from simulation.invariants.staging import staged_streams_enter_whole
from simulation.invariants.subscriptions import (
    acknowledged_runs_are_counted,
    entries_have_one_place,
    messages_are_acknowledged_once,
    non_durable_ones_are_in_use,
    pending_messages_can_end,
    waits_can_end,
)
from simulation.invariants.transactions import (
    ends_are_whole,
    epochs_only_grow,
    ids_are_given_out_once,
    joint_ones_end_once,
    lost_handles_do_not_commit,
    only_older_ones_hold_back,
    open_transactions_can_end,
    writes_belong_to_a_transaction,
)
from simulation.invariants.writers import (
    bodies_are_known,
    named_sequences_grow,
    named_writers_are_no_producers,
    nameless_sequences_are_of_open_transactions,
    topic_epochs_grow,
    writers_have_one_name,
)


def violations(
    state: State,
    log: Log,
    acknowledged: Sequence[Acknowledged] = (),
    found_after_loss: Set[TransactionId] = frozenset(),
) -> list[str]:
    """Return every violated invariant in a sentence.

    `found_after_loss` are the handles that a recovery has found open when writes may have been missing.
    """
    return [
        *sequences_are_contiguous(state, log),
        *named_sequences_grow(state, log),
        *topic_epochs_grow(state, log),
        *writers_have_one_name(state, log),
        *named_writers_are_no_producers(state, log),
        *nameless_sequences_are_of_open_transactions(state, log),
        *bodies_are_known(state, log),
        *acknowledged_once(log, acknowledged),
        *commits_are_numbered(state, log),
        *ends_are_whole(state),
        *writes_belong_to_a_transaction(log),
        *only_older_ones_hold_back(state, log),
        *group_offsets_have_taken_effect(state, log),
        *last_stable_offsets(state, log),
        *read_committed_is_exact(state, log),
        *aborted_records_are_counted(state, log),
        *staged_streams_enter_whole(state, log),
        *epochs_are_those_of_the_leaders(state, log),
        *epochs_only_grow(state, log),
        *ids_are_given_out_once(state, log),
        *principals_are_those_that_began(state, log),
        *open_transactions_can_end(state, log),
        *joint_ones_end_once(log),
        *lost_handles_do_not_commit(log, found_after_loss),
        *messages_are_acknowledged_once(state, log),
        *pending_messages_can_end(state),
        *acknowledged_runs_are_counted(state, log),
        *non_durable_ones_are_in_use(state),
        *entries_have_one_place(state),
        *waits_can_end(state),
        *counts_are_those_that_were_written(state, log),
        *counts_do_not_fall(state),
        *partitions_have_one_topic(state, log),
        *internal_topics_are_empty(log),
        *broker_configs_are_the_last(state, log),
        *rules_are_those_that_were_made(state, log),
        *keys_are_those_that_were_set(state, log),
        *who_got_every_right_at_once_was_the_first_user(state, log),
        *quotas_are_those_that_were_set(state, log),
        *groups_are_durable(state, log),
        *group_epochs_grow(state, log),
        *groups_move_with_their_members(state, log),
        *groups_expire_unused(state, log),
        *tables_are_counted(state),
        *tables_keep_their_bounds(state),
        *state_is_the_fold(state, log),
    ]


def state_is_the_fold(state: State, log: Log) -> Iterator[str]:
    """Invariant 8: the durable state is the fold of the durable events, and nothing else."""
    again = State(limits=state.limits)
    for event in log:
        apply(again, event)
    if not is_same(again, state):
        yield "8: the state is not the fold of its events"
