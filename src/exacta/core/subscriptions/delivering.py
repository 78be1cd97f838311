"""Delivery: which consumer gets which entry next (volatile).

- Exclusive and Failover: the active consumer gets the next entry, in order.
- Shared: the next consumer in turn gets it that has permits, among those of the lowest priority number.
- Key_Shared: the consumer gets it that its key belongs to (`keys.py`). It waits while another consumer still has
  entries of the key, and while an earlier entry of the key waits, so that a key's entries stay in order. Where no order
  is needed, it waits for its owner only.

Entries that wait go before new ones. A new entry for which there is no consumer now is not looked at yet, but for one
whose key must wait: it is noted, and the next ones are looked at. So is one that is delayed; it waits once its time has
come (`delays.py`).

Offsets of an entry that have no message any more are for nobody, as offsets between entries are. An entry of which
nothing else is left is not delivered. The position passes what is for nobody. Delivery forgets the first of these
offsets where there are too many to know. No client acknowledges them, so that what lies at the position is read again.

    message \\ input    acknowledged   pending       commit          abort       redeliver   its consumer is gone
    not looked at      acknowledged   pending       -               -           -           -
    with a consumer    acknowledged   withheld      -               -           waits *     waits
    waiting            acknowledged   withheld      -               -           -           -
    withheld           acknowledged   -             acknowledged    waits *     -           -
    delayed            acknowledged   withheld **   -               -           -           -

* The redelivery count of its entry grows. In an Exclusive or Failover subscription, delivery goes back to the position.

** Once its time has come. Until then it is delayed, and pending.
"""

from bisect import bisect_right

from exacta.core.commands.subscriptions import Deliver, Redeliver
from exacta.core.events import EntriesDelivered, EntriesTakenBack, MessagesAcknowledged
from exacta.core.ids import ConsumerId, Offset
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Delivered, Delivering
from exacta.core.state import weights
from exacta.core.state.delivery import ConnectedConsumer, Delivery, SeenEntry
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.subscription import Subscription
from exacta.core.subscriptions import delays, keys
from exacta.core.subscriptions.consumers import consumer_of
from exacta.core.subscriptions.durability import acknowledged
from exacta.core.subscriptions.subscribing import find
from exacta.core.values.limits import Limits
from exacta.core.values.runs import Run, count, runs_between, subtract
from exacta.core.values.subscriptions import SubscriptionType
from exacta.core.values.usage import Table

MOST_WAITING_AT_ONCE = 100
"""The entries of which this many are given again in one round: each may be large, and all of them are read at once."""


def deliver(state: State, command: Deliver, now_ms: int) -> Outcome:
    """Choose a consumer for each entry that can be delivered now."""
    found = find(state, command.topic, command.partition, command.subscription)
    if isinstance(found, Rejection):
        return Outcome(reply=found)
    partition, subscription, delivery = found
    if delivery is None:
        return Outcome(reply=Delivered())
    round_ = _Round(subscription, delivery, state.limits, now_ms, room_for_entries(state))
    round_.give_waiting()
    is_next = command.read_from == delivery.read_to < command.read_to
    if is_next and not round_.is_cut and not _keeps_order(subscription, delivery):
        round_.look_at(command)
    elif command.read_from == subscription.position < command.read_to:
        round_.look_back_at(command)
    reply = Delivered(entries=tuple(round_.entries))
    advanced = _advanced(partition, subscription, delivery, round_.passed)
    if round_.is_idle:
        return Outcome(events=advanced, reply=reply)
    delivered = EntriesDelivered(
        partition_id=partition.partition_id,
        name=subscription.name,
        read_to=round_.read_to,
        given=tuple(round_.given),
        noted=tuple(round_.noted),
        passed=tuple(round_.passed),
    )
    timers = delays.timers(partition, subscription.name, round_.noted)
    return Outcome(events=(delivered, *advanced), reply=reply, timers=timers)


def permits(delivery: Delivery) -> int:
    """Return how many messages the consumers that could be served take."""
    if delivery.is_in_order:
        return 0 if delivery.active is None else max(delivery.consumers[delivery.active].permits, 0)
    return sum(max(each.permits, 0) for each in delivery.consumers.values())


def room_for_entries(state: State) -> int:
    """Return how many entries may be noted more, of all subscriptions together; delivery waits for room."""
    return max(0, state.limits.max_delivery_bytes - state.volatile.usage[Table.DELIVERIES].total) // weights.ENTRY


def looks_further(
    subscription: Subscription, delivery: Delivery, limits: Limits, more: int = 0, at: Offset | None = None
) -> bool:
    """Return whether the new entry at an offset may be delivered, where this many `more` are noted in this round.

    Delivery waits for acknowledgements of what consumers have, or of the oldest messages, or for the end of delays. The
    oldest messages are those between the acknowledged runs, and are delivered in any case: nobody could acknowledge
    them otherwise. None stands for where delivery has come to.
    """
    runs = subscription.acknowledged
    if len(runs) >= limits.max_acknowledged_runs and runs[-1][1] < (delivery.read_to if at is None else at):
        return False
    if _keeps_order(subscription, delivery):
        return False
    if len(delivery.delayed) >= limits.max_delayed_entries:
        return False
    return delivery.is_in_order or len(delivery.entries) + more < limits.max_noted_entries


def looks_back(subscription: Subscription, delivery: Delivery) -> bool:
    """Return whether the position may lie at an offset that is for nobody, and that delivery has forgotten."""
    return subscription.position < min(delivery.forgotten_to, delivery.read_to)


def _keeps_order(subscription: Subscription, delivery: Delivery) -> bool:
    """Return whether nothing may be delivered because an open transaction may give earlier messages back."""
    pending = subscription.cumulative
    return delivery.is_in_order and pending is not None and delivery.read_to < pending.before


def _advanced(
    partition: Partition, subscription: Subscription, delivery: Delivery, passed: list[Run]
) -> tuple[MessagesAcknowledged, ...]:
    """Return the event by which the position passes what is for nobody; it may be lost, and nobody waits for it."""
    position = subscription.position
    while runs := [
        *runs_between(delivery.passed, position, position),
        *runs_between(passed, position, position),
        *runs_between(subscription.acknowledged, position, position),
    ]:
        position = Offset(runs[0][1] + 1)
    if position == subscription.position:
        return ()
    return (acknowledged(partition, subscription, (), position),)


class _Round:
    """One round of choices, which changes nothing but itself."""

    def __init__(
        self, subscription: Subscription, delivery: Delivery, limits: Limits, now_ms: int, most_noted: int
    ) -> None:
        self._now_ms = now_ms
        self._most_noted = most_noted
        self._subscription = subscription
        self._delivery = delivery
        self._limits = limits
        self._permits = {each.consumer_id: each.permits for each in delivery.consumers.values()}
        self._held = {each.consumer_id: each.held for each in delivery.consumers.values()}
        self._keys: dict[int, ConsumerId] = {}
        """The consumers that have got entries of these keys in this round."""
        self._consumers = list(delivery.consumers.values())
        self._places = {each.consumer_id: place for place, each in enumerate(self._consumers)}
        self._takers: list[int] | None = None
        """The places of the consumers among which the next one has its turn; None: to be looked at."""
        self._blocked: set[int] = set()
        """The keys of which an earlier entry waits."""
        self._served = delivery.served
        self.is_cut = False
        """True if more of what waits could be given in a further round."""
        self.entries: list[Delivering] = []
        """The entries as their consumers are to be sent them, in the order of `given`."""
        self.given: list[tuple[ConsumerId, SeenEntry, int]] = []
        """The entries with their consumers, and the permits that each takes: one for each message that is left."""
        self.noted: list[SeenEntry] = []
        self._delayed = 0
        """The number of those that are noted because they are delayed."""
        self.passed: list[Run] = []
        self.read_to = delivery.read_to

    @property
    def is_idle(self) -> bool:
        """Return whether the round has changed nothing."""
        return not self.given and not self.noted and self.read_to == self._delivery.read_to

    def give_waiting(self) -> None:
        """Give out the entries that wait, as far as consumers take them."""
        for base in self._delivery.waiting:
            if len(self.given) >= MOST_WAITING_AT_ONCE:
                self.is_cut = True
                return
            entry = self._delivery.entries[base]
            seen = SeenEntry(base, entry.count, entry.key)
            consumer = self._choose(seen)
            if consumer is not None:
                self._give(consumer, seen, self._left(seen))
            elif self._is_by_key:
                self._blocked.add(entry.key)
            else:
                return

    def look_at(self, command: Deliver) -> None:
        """Give out the entries that were read, up to the first that nobody takes now."""
        end = self.read_to
        for read in command.seen:
            seen = delays.without_past_delay(read, self._delivery, self._now_ms)
            left = self._left(seen)
            if left:
                if self._has_too_many(seen) or not self._take(seen, left):
                    self._pass_over(end, seen.base)
                    self.read_to = seen.base
                    return
            elif not self._delivery.is_in_order and not self._is_done(seen):
                self.noted.append(seen)  # what is left of it is pending
            self._pass_over(end, seen.base)
            self.passed += seen.gaps
            end = Offset(seen.base + seen.count)
        self._pass_over(end, command.read_to)
        self.read_to = command.read_to

    def look_back_at(self, command: Deliver) -> None:
        """Note what is for nobody of that which was read again, up to where delivery has come to."""
        end = command.read_from
        for seen in command.seen:
            self._pass_over(end, seen.base)
            self.passed += seen.gaps
            end = Offset(seen.base + seen.count)
        self._pass_over(end, min(command.read_to, self._delivery.read_to))

    def _left(self, seen: SeenEntry) -> list[Run]:
        """Return the messages of an entry that are there, and neither acknowledged nor pending."""
        return _without(self._delivery.left(self._subscription, *_ends(seen)), seen.gaps)

    def _take(self, seen: SeenEntry, left: list[Run]) -> bool:
        if seen.deliver_at_ms:
            self._delayed += 1
            self.noted.append(seen)
            return True
        consumer = self._choose(seen)
        if consumer is not None:
            self._give(consumer, seen, left)
            return True
        if self._is_by_key and self._may_look_ahead(seen):
            self._blocked.add(seen.key)
            self.noted.append(seen)
            return True
        return False

    def _is_done(self, seen: SeenEntry) -> bool:
        return not _without(self._subscription.unacknowledged(*_ends(seen)), seen.gaps)

    def _pass_over(self, end: Offset, base: Offset) -> None:
        if end < base:
            self.passed.append((end, Offset(base - 1)))

    @property
    def _is_by_key(self) -> bool:
        return self._delivery.subscription_type is SubscriptionType.KEY_SHARED

    def _may_look_ahead(self, seen: SeenEntry) -> bool:
        """Return whether entries of other keys may be looked for behind one that must wait."""
        if len(self._delivery.waiting) + len(self.noted) - self._delayed >= self._limits.max_look_ahead_entries:
            return False
        return not self._has_too_many(seen) and any(self._can_take(each) for each in self._consumers)

    def _has_too_many(self, seen: SeenEntry) -> bool:
        if len(self._delivery.delayed) + self._delayed >= self._limits.max_delayed_entries:
            return True
        more = len(self.given) + len(self.noted)
        if more >= self._most_noted and not self._delivery.is_in_order:
            return True
        return not looks_further(self._subscription, self._delivery, self._limits, more, seen.base)

    def _can_take(self, consumer: ConnectedConsumer) -> bool:
        if self._permits[consumer.consumer_id] <= 0:
            return False
        is_bounded = not self._delivery.is_in_order
        return not is_bounded or self._held[consumer.consumer_id] < self._limits.max_unacknowledged_per_consumer

    def _choose(self, seen: SeenEntry) -> ConnectedConsumer | None:
        """Return the consumer that takes this entry now."""
        delivery = self._delivery
        if delivery.is_in_order:
            active = None if delivery.active is None else delivery.consumers[delivery.active]
            return active if active is not None and self._can_take(active) else None
        return self._by_key(seen) if self._is_by_key else self._next_in_turn()

    def _next_in_turn(self) -> ConnectedConsumer | None:
        if self._takers is None:
            takers = [each for each in self._consumers if self._can_take(each)]
            lowest = min((each.priority for each in takers), default=0)
            self._takers = [self._places[each.consumer_id] for each in takers if each.priority == lowest]
        if not self._takers:
            return None
        served = -1 if self._served is None else self._places.get(self._served, -1)
        return self._consumers[self._takers[bisect_right(self._takers, served) % len(self._takers)]]

    def _by_key(self, seen: SeenEntry) -> ConnectedConsumer | None:
        owner = keys.owner(self._delivery, self._consumers, seen.key)
        if owner is None or not self._can_take(owner):
            return None
        if self._delivery.is_out_of_order:
            return owner
        if seen.key in self._blocked:
            return None
        holder = self._keys.get(seen.key)
        if holder is None and seen.key in self._delivery.key_holders:
            holder = self._delivery.key_holders[seen.key][0]
        return owner if holder in (None, owner.consumer_id) else None

    def _give(self, consumer: ConnectedConsumer, seen: SeenEntry, left: list[Run]) -> None:
        consumer_id = consumer.consumer_id
        permits = count(left)
        self._permits[consumer_id] -= permits
        self._held[consumer_id] += seen.count
        self._keys[seen.key] = consumer_id
        self._served = consumer_id
        if not self._can_take(consumer):
            self._takers = None
        self.given.append((consumer_id, seen, permits))
        self.entries.append(
            Delivering(
                consumer_id=consumer_id,
                base=seen.base,
                count=seen.count,
                redeliveries=self._delivery.redeliveries_of(self._subscription, seen.base),
                free=tuple(left),
            )
        )


def _ends(seen: SeenEntry) -> tuple[Offset, Offset]:
    return seen.base, Offset(seen.base + seen.count - 1)


def _without(runs: list[Run], gaps: tuple[Run, ...]) -> list[Run]:
    for first, last in gaps if runs else ():
        subtract(runs, first, last)
    return runs


def redeliver(state: State, command: Redeliver, now_ms: int) -> Outcome:
    """Take entries back from a consumer that has them; those that it has not are left where they are."""
    found = consumer_of(state, command)
    if isinstance(found, Rejection):
        return Outcome(reply=found)
    partition, delivery, consumer = found
    if delivery.is_in_order:
        if delivery.active != consumer.consumer_id:
            return Outcome(reply=DONE)
        entries: tuple[Offset, ...] = ()
    else:
        named = delivery.order if command.entries is None else command.entries
        entries = tuple(base for base in named if _has(delivery, consumer, base))
        if not entries:
            return Outcome(reply=DONE)
    taken_back = EntriesTakenBack(
        partition_id=partition.partition_id,
        name=command.subscription,
        entries=entries,
        is_counted=command.is_counted,
    )
    return Outcome(events=(taken_back,), reply=DONE)


def _has(delivery: Delivery, consumer: ConnectedConsumer, base: Offset) -> bool:
    entry = delivery.entries.get(base)
    return entry is not None and entry.consumer == consumer.consumer_id
