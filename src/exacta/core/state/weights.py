"""The weight of each entry of the state's tables: about the bytes of memory that it takes, from its sizes alone.

The constants are measured, with some room: `tests/core/test_bounds.py` fills each table and compares. A weight
never depends on what a client says of a size, and can be made again from the state (`weigh`).
"""

from collections.abc import Collection, Hashable, Iterable, Mapping

from exacta.core.ids import SubscriptionKey
from exacta.core.state.classic_membership import Member, Membership
from exacta.core.state.consumer_membership import ConsumerGroup, ConsumerMember
from exacta.core.state.delivery import Delivery
from exacta.core.state.group import CommittedOffset, Group, OffsetMap
from exacta.core.state.partition import AbortedTransaction, Partition
from exacta.core.state.staged import StagedStream
from exacta.core.state.state import State
from exacta.core.state.subscription import Subscription
from exacta.core.state.topic import Topic
from exacta.core.state.transaction import Transaction
from exacta.core.state.writer import KnownWriter
from exacta.core.values.acl import Acl
from exacta.core.values.quotas import QuotaEntity, QuotaKey
from exacta.core.values.scram import ScramKey
from exacta.core.values.usage import Table, Usage, no_usage

TOPIC = 800
PARTITION = 1_400
CONFIG = 250
"""One configuration, or one property, beside its text."""
BUFFER = 150
"""One change of `transaction.buffer` that open transactions do not follow."""
MEMBERSHIP = 1_000
MEMBER = 1_200
"""A member, with the ids of its client, of which 255 characters are kept, and its timers."""
PENDING_MEMBER = 1_200
"""An id of a group that was given out, with its timer; it has the client's id in it."""
CLASSIC_TERMS = 200
"""The words of a member that speaks the classic protocol in a group of the other one, beside its protocols."""
PROTOCOL = 250
NAME = 150
"""One name of a topic in a subscription, beside its text."""
PLACE = 200
"""One partition that a member owns, gives up, or is to own."""
GROUP = 700
PENDING_OFFSETS = 400
OFFSET_TOPIC = 450
OFFSET = 350
TRANSACTIONAL_ID = 700
TRANSACTION = 1_600
PARTICIPANT = 200
PRODUCER = 1_000
WRITTEN_TRANSACTION = 700
"""A transaction's writes to one partition: while it is open, and once it is aborted."""
RUN_OF_RECORDS = 100
STREAM = 700
"""A staged stream, and one that has entered."""
RUN_OF_PLACES = 180
"""A run of places that a writer was told, and the receipt that is made of it."""
WRITER = 600
SEQUENCE = 250
SUBSCRIPTION = 800
RUN = 180
"""A run of acknowledged messages."""
DELIVERY = 1_000
CONSUMER = 1_000
ENTRY = 500
"""An entry that was delivered, or waits."""
ACL = 1_500
"""An access rule, with its places in the index."""
USER = 400
SCRAM_KEY = 600
ENTITY = 600
"""An entity that has quotas, beside its names."""
QUOTA = 150


def text(value: str | None) -> int:
    """Return the bytes of a text."""
    if value is None:
        return 0
    return len(value) if value.isascii() else 4 * len(value)


def texts(values: Iterable[str]) -> int:
    """Return the bytes of several texts."""
    return sum(map(text, values))


def configs(values: Mapping[str, str]) -> int:
    """Return the weight of configurations, or of properties."""
    return CONFIG * len(values) + texts(values) + texts(values.values())


# --- topics -----------------------------------------------------------------------------------------------------------


def topic(entry: Topic) -> int:
    """Return the weight of a topic and its partitions, without what is in these."""
    return (
        TOPIC
        + text(entry.topic)
        + configs(entry.configs)
        + PARTITION * entry.partition_count
        + BUFFER * len(entry.buffers)
    )


def written(runs: Collection[int]) -> int:
    """Return the weight of what a transaction has written to a partition; a run has two numbers."""
    return WRITTEN_TRANSACTION + RUN_OF_RECORDS * (len(runs) // 2)


def aborted(entries: Iterable[AbortedTransaction]) -> int:
    """Return the weight of aborted transactions."""
    return sum(written(each.runs) for each in entries)


def staged(stream: StagedStream) -> int:
    """Return the weight of a staged stream, without its bytes."""
    return STREAM + RUN_OF_PLACES * (len(stream.places) // 2)


def writer(entry: KnownWriter) -> int:
    """Return the weight of a named writer."""
    return WRITER + text(entry.name) + SEQUENCE * len(entry.partitions)


# --- groups -----------------------------------------------------------------------------------------------------------


def member(entry: Member) -> int:
    """Return the weight of a member of a classic group."""
    size = MEMBER + text(entry.member_id) + text(entry.instance_id) + len(entry.assignment) + protocols(entry.protocols)
    return size + (0 if entry.subscription is None else NAME * len(entry.subscription) + texts(entry.subscription))


def protocols(said: Iterable[tuple[str, bytes]]) -> int:
    """Return the weight of the protocols that a member has offered."""
    return sum(PROTOCOL + text(name) + len(metadata) for name, metadata in said)


def _member_growth(before: Member, now: Member) -> int:
    if before.protocols is now.protocols and before.subscription is now.subscription:
        return len(now.assignment) - len(before.assignment)  # most changes: nothing else of it can have changed
    return member(now) - member(before)


def membership(group_id: str, entry: Membership | None) -> int:
    """Return the weight of a classic group's members; None: there is no such group."""
    if entry is None:
        return 0
    return _group_of_members(group_id, entry) + sum(map(member, entry.members.values()))


def _group_of_members(group_id: str, entry: Membership) -> int:
    subscribed = 0 if entry.subscribed is None else NAME * len(entry.subscribed)
    names = text(group_id) + text(entry.protocol_type) + text(entry.protocol) + text(entry.leader)
    return MEMBERSHIP + names + PENDING_MEMBER * len(entry.pending) + subscribed


def membership_growth(group_id: str, before: Membership | None, now: Membership | None) -> int:
    """Return by how much a change lets a classic group grow; members that are as they were are not looked at."""
    if before is None or now is None:
        return membership(group_id, now) - membership(group_id, before)
    growth = _group_of_members(group_id, now) - _group_of_members(group_id, before)
    if now.members is before.members:
        return growth
    for key, each in now.members.items():
        known = before.members.get(key)
        if known is not each:
            growth += member(each) if known is None else _member_growth(known, each)
    return growth - sum(member(each) for key, each in before.members.items() if key not in now.members)


def consumer_member(entry: ConsumerMember) -> int:
    """Return the weight of a member of a group of the consumer protocol."""
    said = (entry.member_id, entry.instance_id, entry.rack_id, entry.pattern)
    return (
        MEMBER
        + sum(map(text, said))
        + NAME * len(entry.topics)
        + texts(entry.topics)
        + PLACE * (len(entry.assigned) + len(entry.revoking))
        + (0 if entry.classic is None else CLASSIC_TERMS + protocols(entry.classic.protocols))
    )


def consumer_group(group_id: str, entry: ConsumerGroup | None) -> int:
    """Return the weight of a group of the consumer protocol; None: there is no such group."""
    if entry is None:
        return 0
    return _looked_at(group_id, entry) + sum(map(consumer_member, entry.members.values())) + _target(entry)


def _target(entry: ConsumerGroup) -> int:
    return PLACE * sum(map(len, entry.target.values()))


def _looked_at(group_id: str, entry: ConsumerGroup) -> int:
    names = PLACE * len(entry.topics) + texts(entry.topics)
    return (
        MEMBERSHIP
        + text(group_id)
        + names
        + sum(text(pattern) + NAME * len(names) for pattern, names in entry.matched.items())
    )


def consumer_growth(group_id: str, before: ConsumerGroup | None, now: ConsumerGroup | None) -> int:
    """Return by how much a change lets a group of the consumer protocol grow."""
    if before is None or now is None:
        return consumer_group(group_id, now) - consumer_group(group_id, before)
    growth = 0
    if now.topics is not before.topics or now.matched is not before.matched:
        growth += _looked_at(group_id, now) - _looked_at(group_id, before)
    if now.target is not before.target:
        growth += _target(now) - _target(before)
    for key, each in now.members.items():
        known = before.members.get(key)
        if known is not each:
            growth += consumer_member(each) - (0 if known is None else consumer_member(known))
    return growth - sum(consumer_member(each) for key, each in before.members.items() if key not in now.members)


def offset(entry: CommittedOffset) -> int:
    """Return the weight of a committed offset."""
    return OFFSET + text(entry.metadata)


def offsets_of_topic(name: str, by_partition: Mapping[int, CommittedOffset]) -> int:
    """Return the weight of a topic's offsets in a group."""
    return OFFSET_TOPIC + text(name) + sum(map(offset, by_partition.values()))


def offsets(entries: OffsetMap) -> int:
    """Return the weight of offsets."""
    return sum(offsets_of_topic(name, by_partition) for name, by_partition in entries.items())


def group(entry: Group) -> int:
    """Return the weight of a group's offsets, committed and pending ones."""
    pending = sum(PENDING_OFFSETS + offsets(each) for each in entry.pending.values())
    return GROUP + text(entry.group_id) + offsets(entry.offsets) + pending


# --- transactions and subscriptions -----------------------------------------------------------------------------------


def participants(partitions: Collection[object], groups: Collection[str], keys: Collection[SubscriptionKey]) -> int:
    """Return the weight of what takes part in a transaction."""
    count = len(partitions) + len(groups) + len(keys)
    return PARTICIPANT * count + texts(groups) + texts(name for _, name in keys)


def transaction(entry: Transaction) -> int:
    """Return the weight of an open transaction."""
    return TRANSACTION + participants(entry.partitions, entry.groups, entry.subscriptions)


def new_subscription(name: str, properties: Mapping[str, str]) -> int:
    """Return the weight of a subscription of which nothing is acknowledged."""
    return SUBSCRIPTION + text(name) + configs(properties)


def subscription(entry: Subscription | None) -> int:
    """Return the weight of a subscription; None: there is none."""
    if entry is None:
        return 0
    runs = len(entry.acknowledged) + sum(map(len, entry.pending.values()))
    return new_subscription(entry.name, entry.properties) + RUN * (runs + len(entry.redelivered))


def delivery(entry: Delivery | None) -> int:
    """Return the weight of the course of delivery; None: nothing is delivered."""
    if entry is None:
        return 0
    return (
        DELIVERY
        + CONSUMER * len(entry.consumers)
        + RUN * (len(entry.ranges) + len(entry.passed))
        + ENTRY * len(entry.entries)
    )


# --- access -----------------------------------------------------------------------------------------------------------


def acl(entry: Acl) -> int:
    """Return the weight of an access rule. Principal and host also lie in the index, and so does a name's prefix."""
    return ACL + 2 * text(entry.name) + 2 * text(entry.principal) + 2 * text(entry.host)


def acl_key(entry: Acl) -> Hashable:
    """Return the key under which a rule's bytes are charged: those for one name have one owner."""
    return entry.kind, entry.pattern, entry.name


def user(name: str, keys: Collection[ScramKey]) -> int:
    """Return the weight of a user; one without keys is none."""
    if not keys:
        return 0
    secrets = sum(len(each.salt) + len(each.stored_key.value) + len(each.server_key.value) for each in keys)
    return USER + text(name) + SCRAM_KEY * len(keys) + secrets


def client_quotas(entity: QuotaEntity, quotas: Mapping[QuotaKey, float]) -> int:
    """Return the weight of an entity with its quotas; one without any is none."""
    return ENTITY + sum(text(name) for _, name in entity.parts) + QUOTA * len(quotas) if quotas else 0


# --- all --------------------------------------------------------------------------------------------------------------


def weigh(state: State) -> dict[Table, Usage]:
    """Return the weights of all tables, the long way round; no entry has an owner."""
    volatile = state.volatile
    usage = no_usage()

    def count(table: Table, sizes: Iterable[int]) -> None:
        usage[table].total += sum(sizes)

    count(Table.TOPICS, map(topic, state.topics.values()))
    count(Table.TOPICS, map(configs, state.broker_configs.values()))
    count(Table.MEMBERS, (membership(*each) for each in volatile.memberships.items()))
    count(Table.MEMBERS, (membership(*each) for each in state.settled.items()))
    count(Table.MEMBERS, (consumer_group(*each) for each in volatile.consumer_groups.items()))
    count(Table.OFFSETS, map(group, state.groups.values()))
    count(Table.TRANSACTIONAL_IDS, (TRANSACTIONAL_ID + text(each) for each in state.transactional_ids))
    count(Table.TRANSACTIONS, map(transaction, state.transactions.values()))
    count(Table.HANDLES, (each.is_known_by_id for each in state.transactions.values()))
    count(Table.WRITERS, (WRITER + text(each.name) for each in state.writers.values()))
    for partition in state.partitions.values():
        _count_partition(usage, partition)
    for by_name in volatile.non_durable.values():
        count(Table.SUBSCRIPTIONS, map(subscription, by_name.values()))
    count(Table.DELIVERIES, map(delivery, volatile.deliveries.values()))
    count(Table.ACLS, map(acl, state.acls))
    count(Table.USERS, (user(*each) for each in state.scram_keys.items()))
    count(Table.QUOTAS, (client_quotas(*each) for each in state.client_quotas.items()))
    return usage


def _count_partition(usage: dict[Table, Usage], partition: Partition) -> None:
    usage[Table.PRODUCERS].total += PRODUCER * len(partition.producers)
    usage[Table.ABORTED].total += sum(map(written, partition.open_runs.values())) + aborted(partition.aborted)
    usage[Table.STAGED].total += (
        sum(map(staged, partition.staged.values()))
        + STREAM * len(partition.entered)
        + RUN_OF_PLACES * len(partition.receipts)
    )
    usage[Table.WRITERS].total += SEQUENCE * (len(partition.named_sequences) + partition.nameless_writers)
    usage[Table.SUBSCRIPTIONS].total += sum(map(subscription, partition.subscriptions.values()))
