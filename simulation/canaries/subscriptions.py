"""Planted bugs of subscriptions."""

from types import SimpleNamespace
from typing import Any

from exacta.core import decide
from exacta.core.apply import _APPLY
from exacta.core.commands import Acknowledge, AcknowledgeSoon, EndDelays
from exacta.core.events import LogStartMoved, MessagesAcknowledged
from exacta.core.ids import Offset, TransactionId
from exacta.core.outcome import Outcome
from exacta.core.promises import Promise
from exacta.core.state.delivery import Delivery, SeenEntry
from exacta.core.state.state import State
from exacta.core.state.subscription import Subscription
from exacta.core.subscriptions import acknowledging, consumers, delays, delivering, durability, keys
from exacta.core.subscriptions import rules as subscriptions_rules
from exacta.core.transactions import rules as transactions_rules
from exacta.core.values.limits import Limits
from exacta.core.values.runs import Run, missing
from exacta.engine import dispatch
from exacta.engine.dispatch import Dispatcher
from exacta.ports.record_format import LogEntry
from exacta.records.record_format import KafkaRecordFormat
from simulation.canaries import Replacements, canary
from simulation.invariants import subscriptions as invariants


@canary(
    "a transaction acknowledges what another transaction has acknowledged and not committed yet",
    shows=r"10: MessagesAcknowledgedInTransaction.* takes",
)
def conflict_not_checked() -> Replacements:
    return [(acknowledging, "_has_conflict", lambda subscription, command, transaction_id: False)]


@canary(
    "single and cumulative acknowledgements are not checked against each other (Apache Pulsar 4.2)",
    shows=r"10: MessagesAcknowledgedInTransaction.* takes",
)
def kinds_not_checked() -> Replacements:
    def one_by_one(self: Subscription, first: Offset, last: Offset) -> TransactionId | None:
        alone = Subscription(self.name, self.position, self.subscription_type, {}, 0, pending=self.pending)
        return original(alone, first, last)

    original = Subscription.pending_in
    return [(Subscription, "pending_in", one_by_one)]


@canary("a consumer that is not active acknowledges cumulatively in a transaction", shows="overtaken: ")
def overtaken_not_checked() -> Replacements:
    return [(acknowledging, "_is_overtaken", lambda delivery, command: False)]


@canary("an abort acknowledges what its transaction had acknowledged", shows=r"10: .* differs from its log")
def ack_of_abort_stays() -> Replacements:
    original = Subscription.end

    def end(self: Subscription, transaction_id: TransactionId, *, commit: bool) -> tuple[list[Run], Offset]:
        return original(self, transaction_id, commit=True)

    return [(Subscription, "end", end)]


@canary("a commit forgets what its transaction had acknowledged", shows=r"acknowledged again|10: .* differs")
def ack_lost_on_commit() -> Replacements:
    original = Subscription.end

    def end(self: Subscription, transaction_id: TransactionId, *, commit: bool) -> tuple[list[Run], Offset]:
        return original(self, transaction_id, commit=False)

    return [(Subscription, "end", end)]


@canary(
    "an abort gives back what was acknowledged at once after its transaction had acknowledged it",
    shows=r"acknowledged again|10: .* (differs from its log|has)",
)
def plain_ack_lost_on_abort() -> Replacements:
    def acknowledge(self: Subscription, runs: Any, before: Offset) -> None:
        free = [run for run in runs if self.pending_in(*run) is None]
        original(self, free, before)

    original = Subscription.acknowledge
    return [(Subscription, "acknowledge", acknowledge)]


@canary(
    "the position passes messages that are not acknowledged (cumulative overtaken)",
    shows=r"10: .* (differs from its log|has)",
)
def cumulative_overtakes() -> Replacements:
    original = Subscription.move

    def move(self: Subscription, before: Offset) -> None:
        original(self, before)
        if len(self.acknowledged) > 1:
            original(self, self.acknowledged[0][0])

    return [(Subscription, "move", move)]


@canary(
    "an acknowledgement is answered before it is durable, and a stop of the machine brings the message back",
    shows=r"8: |acknowledged again",
)
def ack_not_awaited() -> Replacements:
    return [(Acknowledge, "promises", Promise.SOON), (AcknowledgeSoon, "promises", Promise.SOON)]


@canary(
    "records that are deleted stay in the backlog of a subscription",
    shows=r"10: .* differs from its log",
)
def cursor_behind_the_log() -> Replacements:
    original = _APPLY[LogStartMoved]

    def moved(state: State, event: Any) -> None:
        partition = state.partitions[event.partition_id]
        subscriptions, partition.subscriptions = partition.subscriptions, {}
        original(state, event)
        partition.subscriptions = subscriptions

    return [(_APPLY, LogStartMoved, moved)]


@canary("a consumer of a subscription gets what was aborted", shows=r"aborted read: ")
def aborted_leaked() -> Replacements:
    original = KafkaRecordFormat.entries

    def entries(self: KafkaRecordFormat, batches: Any, aborted: Any) -> list[LogEntry]:
        return original(self, batches, list(aborted)[1:])

    return [(KafkaRecordFormat, "entries", entries)]


@canary(
    "a message that a transaction has acknowledged is delivered to somebody else (pending ack delivered)",
    shows=r"pending and delivered: ",
)
def pending_delivered() -> Replacements:
    def free(self: Subscription, first: Offset, last: Offset) -> list[Run]:
        return [] if last < self.position else missing(self.acknowledged, max(first, self.position), last)

    return [(Subscription, "free", free)]


@canary("a message that is acknowledged is delivered again", shows=r"acknowledged again")
def acknowledged_delivered() -> Replacements:
    def unacknowledged(self: Subscription, first: Offset, last: Offset) -> list[Run]:
        return [] if last < self.position else [(first, last)]

    return [
        (Subscription, "free", lambda self, first, last: [(first, last)]),
        (Subscription, "unacknowledged", unacknowledged),
    ]


@canary("an acknowledgement of a reader is written into the journal", shows=r"10: .* not in the journal|recovery fails")
def reader_in_the_journal() -> Replacements:
    return [(durability, "NonDurableMessagesAcknowledged", MessagesAcknowledged)]


@canary("a reader leaves its subscription behind", shows=r"10: .* is not durable, idle|survives: ")
def reader_survives() -> Replacements:
    return [(consumers, "gone_without_consumers", lambda partition, subscription: ())]


@canary(
    "an entry of a batch is looked for as if the batch ended with it", shows=r"removed: .* acknowledges what is there"
)
def found_up_to_its_end() -> Replacements:
    def read_chosen(self: Any, key: Any, chosen: Any, form: Any) -> None:
        ends, find = {each.base: Offset(each.base + each.count) for each in chosen}, self._journal.find
        everything, self._journal = (
            self._journal,
            SimpleNamespace(find=lambda stream, offset, _, most_bytes: find(stream, offset, ends[offset], most_bytes)),
        )
        try:
            original(self, key, chosen, form)
        finally:
            self._journal = everything

    original = Dispatcher._read_chosen
    return [(Dispatcher, "_read_chosen", read_chosen)]


@canary("a key goes to its new owner before the former one has acknowledged what it has", shows=r"10: .* has the keys")
def key_torn() -> Replacements:
    def by_key(self: Any, seen: Any) -> Any:
        found = keys.owner(self._delivery, self._consumers, seen.key)
        return found if found is not None and self._can_take(found) else None

    return [(delivering._Round, "_by_key", by_key)]


@canary("a delayed message is delivered before its time", shows=r"early: ")
def delay_ignored() -> Replacements:
    def without_delay(seen: SeenEntry, delivery: Delivery, now_ms: int) -> SeenEntry:
        return SeenEntry(seen.base, seen.count, seen.key, gaps=seen.gaps)

    return [(delays, "without_past_delay", without_delay)]


@canary("the timer of delays fires before the time of some of them", shows=r"early: ")
def delays_end_together() -> Replacements:
    def end_delays(state: State, command: EndDelays, now_ms: int) -> Outcome:
        return original(state, command, now_ms + 2_000)

    original = subscriptions_rules.RULES[EndDelays]
    return [(decide._DECIDE, EndDelays, end_delays)]


@canary(
    "a subscription that reads committed messages is read to the high watermark",
    shows=r"aborted read: |in the end Pulsar's reader|which was not committed",
)
def levels_mixed() -> Replacements:
    return [(dispatch, "reads_committed", lambda subscription: False)]


@canary(
    "a reader of uncommitted messages may acknowledge committed ones only",
    shows=r"refused: reader.* acknowledges: .*OFFSET_OUT_OF_RANGE",
)
def uncommitted_not_acknowledged() -> Replacements:
    return [(acknowledging, "end_of", lambda partition, subscription: partition.last_stable_offset)]


@canary("consumers are not told that an abort has disconnected them, and wait for ever", shows="liveness: ")
def abort_closes_nobody() -> Replacements:
    return [(transactions_rules, "told_of_aborts", lambda state, events: ())]


@canary(
    "delivery waits until the oldest messages are acknowledged, and does not deliver them",
    shows=r"10: .* waits for what",
)
def oldest_not_delivered() -> Replacements:
    def looks_further(subscription: Subscription, delivery: Delivery, limits: Limits, *more: Any) -> bool:
        is_full = len(subscription.acknowledged) >= limits.max_acknowledged_runs
        return not is_full and original(subscription, delivery, limits, *more)

    original = delivering.looks_further
    return [
        (delivering, "looks_further", looks_further),
        (dispatch, "looks_further", looks_further),
        (invariants, "looks_further", looks_further),
    ]


@canary(
    "delivery forgets which offsets are for nobody, and the position waits there for an acknowledgement",
    shows="liveness: ",
)
def forgotten_not_read_again() -> Replacements:
    def pass_over(self: Delivery, runs: tuple[Run, ...], most: int) -> None:
        original(self, runs, 0)

    original = Delivery.pass_over
    return [
        (Delivery, "pass_over", pass_over),
        (dispatch, "looks_back", lambda subscription, delivery: False),
    ]
