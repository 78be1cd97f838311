"""The commands that a client sends for each kind of step, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.session import COORDINATOR
from tests.differential.machine import How, Step, Taking
from tests.pulsar.differential.side import (
    NOTHING,
    Consumer,
    Side,
    Transaction,
    ack_set_without,
    told,
)
from tests.pulsar.differential.steps import (
    Ack,
    AckUpTo,
    Begin,
    BeginShort,
    Close,
    End,
    Expire,
    Flow,
    LastId,
    Read,
    Redeliver,
    Reload,
    Seek,
    SeekTime,
    Send,
    Subscribe,
    Unsubscribe,
)

LONG_MS = 600_000
HOW = Taking()
takes = HOW.by


def takes_where_open(*kinds: type[Step]) -> Callable[[Callable[[Side, Any, Consumer], str]], How]:
    """Register how kinds of steps are taken by their consumer; where that is not open, there is nothing to do."""

    def register(how: Callable[[Side, Any, Consumer], str]) -> How:
        @takes(*kinds)
        def take(side: Side, step: Any) -> str:
            consumer = side.consumers.get(step.consumer)
            return NOTHING if consumer is None else how(side, step, consumer)

        return take

    return register


# --- messages ---------------------------------------------------------------------------------------------------------


@takes(Send)
def _send(side: Side, step: Send) -> str:
    if not step.transaction:
        return side.send(step.count, None)
    transaction = side.transactions.get(step.transaction)
    if transaction is None:
        return NOTHING
    if "topic" not in transaction.registered:
        answer = _add_topic(side, transaction)
        if answer != "ok":
            return f"registration: {answer}"
        transaction.registered.add("topic")
    return side.send(step.count, transaction)


def _add_topic(side: Side, transaction: Transaction) -> str:
    return told(side.link.ask(side.session.add_partitions(transaction.id, [side.topic])))


# --- consumers --------------------------------------------------------------------------------------------------------


@takes(Subscribe)
def _subscribe(side: Side, step: Subscribe) -> str:
    others = (each.subscribe for each in side.consumers.values())
    shares_keys = step.kind == "Key_Shared" and step.subscription in {each.subscription for each in others}
    if step.consumer in side.consumers or shares_keys:
        return NOTHING  # which of two consumers has which keys, each broker divides for itself
    command = pb.CommandSubscribe(
        subscription=step.subscription,
        sub_type=step.kind,
        initial_position=pb.CommandSubscribe.Latest if step.latest else pb.CommandSubscribe.Earliest,
    )
    if step.kind == "Shared" and step.consumer != "x":
        command.priority_level = 1  # so that it is no matter of chance which consumer gets what
    return side.subscribe(step.consumer, command, step.permits)


@takes_where_open(Flow)
def _flow(side: Side, step: Flow, consumer: Consumer) -> str:
    side.link.tell(side.session.flow(consumer.number, step.permits))
    return "sent"


@takes(Read)
def _read(side: Side, step: Read) -> str:
    start = side.message_id(step.after)
    if step.consumer in side.consumers or start is None:
        return NOTHING
    command = pb.CommandSubscribe(
        subscription=f"reader-{side._numbers}", sub_type=pb.CommandSubscribe.Exclusive, durable=False
    )
    command.start_message_id.CopyFrom(start)
    return side.subscribe(step.consumer, command)


@takes_where_open(Close)
def _close(side: Side, step: Close, consumer: Consumer) -> str:
    answer = told(side.ask(pb.CommandCloseConsumer(consumer_id=consumer.number)))
    side.note_failover(consumer)
    side.consumers.pop(step.consumer)
    return answer


@takes_where_open(Unsubscribe)
def _unsubscribe(side: Side, step: Unsubscribe, consumer: Consumer) -> str:
    answer = told(side.ask(pb.CommandUnsubscribe(consumer_id=consumer.number)))
    if answer == "ok":
        side.consumers.pop(step.consumer, None)
    return answer


@takes_where_open(Redeliver)
def _redeliver(side: Side, step: Redeliver, consumer: Consumer) -> str:
    ids = [found for entry in step.entries if (found := side.message_id(entry)) is not None]
    if step.entries and not ids:
        return NOTHING
    side.tell(pb.CommandRedeliverUnacknowledgedMessages(consumer_id=consumer.number, message_ids=ids))
    return "sent"


@takes_where_open(Seek)
def _seek(side: Side, step: Seek, consumer: Consumer) -> str:
    to = side.message_id(step.to, step.index)
    if to is None:
        return NOTHING
    if step.index is not None and step.to >= 0:
        to.ack_set.extend(ack_set_without(side.entries[step.to].count, range(step.index + 1)))
    command = pb.CommandSeek(consumer_id=consumer.number, message_id=to)
    side.note_failover(consumer)
    return told(side.ask(command))


@takes_where_open(SeekTime)
def _seek_time(side: Side, step: SeekTime, consumer: Consumer) -> str:
    if step.entry >= len(side.entries):
        return NOTHING
    at_ms = side.entries[step.entry].publish_time_ms + step.plus_ms
    side.note_failover(consumer)
    return told(side.ask(pb.CommandSeek(consumer_id=consumer.number, message_publish_time=at_ms)))


@takes_where_open(LastId)
def _last_id(side: Side, step: LastId, consumer: Consumer) -> str:
    answer = side.ask(pb.CommandGetLastMessageId(consumer_id=consumer.number))
    if isinstance(answer, pb.CommandError):
        return told(answer)
    return f"last {_name_of(side, answer.last_message_id)}"


def _name_of(side: Side, message: pb.MessageIdData) -> str:
    for entry in side.entries:
        if entry.id is not None and (entry.id.ledger_id, entry.id.entry_id) == (message.ledger_id, message.entry_id):
            return f"{entry.number}" if message.batch_index < 0 else f"{entry.number}.{message.batch_index}"
    return "none" if message.entry_id >= 2**63 - 1 else "another"


# --- acknowledgements -------------------------------------------------------------------------------------------------


@takes_where_open(Ack, AckUpTo)
def _acknowledge(side: Side, step: Ack | AckUpTo, consumer: Consumer) -> str:
    message = side.message_id(step.entry, step.index)
    if message is None:
        return NOTHING
    up_to = isinstance(step, AckUpTo)
    count = side.entries[step.entry].count
    if step.index is not None:
        message.ack_set.extend(ack_set_without(count, range(0 if up_to else step.index, step.index + 1)))
    if count > 1:
        message.batch_size = count
    least = None
    if step.transaction:
        transaction = side.transactions.get(step.transaction)
        if transaction is None:
            return NOTHING
        answer = _register(side, consumer, transaction)
        if answer != "ok":
            return f"registration: {answer}"
        least = transaction.id
    answered = step.answered or bool(step.transaction)
    command = side.session.acknowledge(
        consumer.number, [message], cumulative=up_to, transaction=least, answered=answered
    )
    if answered:
        return told(side.link.ask(command))
    side.link.tell(command)
    return "sent"


def _register(side: Side, consumer: Consumer, transaction: Transaction) -> str:
    subscription = consumer.subscribe.subscription
    if f"subscription {subscription}" in transaction.registered:
        return "ok"
    answer = told(side.link.ask(side.session.add_subscriptions(transaction.id, side.topic, subscription)))
    if answer == "ok":
        transaction.registered.add(f"subscription {subscription}")
    return answer


# --- transactions -----------------------------------------------------------------------------------------------------


@takes(Begin)
def _begin(side: Side, step: Begin) -> str:
    return _new(side, step.transaction, LONG_MS)


@takes(BeginShort)
def _begin_short(side: Side, step: BeginShort) -> str:
    return _new(side, step.transaction, round(side.link.short_s * 1000))


def _new(side: Side, name: str, timeout_ms: int) -> str:
    answer = side.link.ask(side.session.begin(timeout_ms))
    if told(answer) == "ok":
        assert answer.txnid_most_bits == COORDINATOR
        side.transactions[name] = Transaction(answer.txnid_least_bits)
    return told(answer)


@takes(Expire)
def _expire(side: Side, step: Expire) -> str:
    """Ask for a registration again and again: it is refused as soon as the transaction is over."""
    transaction = side.transactions.get(step.transaction)
    if transaction is None:
        return NOTHING
    for _ in range(60):
        answer = _add_topic(side, transaction)
        if answer != "ok":
            return "over"
        side.link.pass_time(side.link.short_s / 4)
    return "not over"


@takes(End)
def _end(side: Side, step: End) -> str:
    transaction = side.transactions.get(step.transaction)
    if transaction is None:
        return NOTHING
    return told(side.link.ask(side.session.end(transaction.id, commit=step.commit)))


@takes(Reload)
def _reload(side: Side, step: Reload) -> str:
    side.reload()
    return "ok"
