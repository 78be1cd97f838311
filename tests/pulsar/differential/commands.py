"""The commands that a client sends for each kind of step, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from exacta.protocol.pulsar import messages_pb2 as pb
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
    Step,
    Subscribe,
    Unsubscribe,
)

LONG_MS = 600_000
HOW: dict[type[Step], Callable[[Side, Any], str]] = {}

S = TypeVar("S", bound=Step)


def takes(kind: type[S]) -> Callable[[Callable[[Side, S], str]], Callable[[Side, S], str]]:
    """Register how a kind of step is taken."""

    def register(how: Callable[[Side, S], str]) -> Callable[[Side, S], str]:
        HOW[kind] = how
        return how

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
        answer = told(side.ask(_add_topic(side, transaction)))
        if answer != "ok":
            return f"registration: {answer}"
        transaction.registered.add("topic")
    return side.send(step.count, transaction)


def _add_topic(side: Side, transaction: Transaction) -> pb.CommandAddPartitionToTxn:
    most, least = transaction.id
    return pb.CommandAddPartitionToTxn(
        request_id=side.next_request(), txnid_most_bits=most, txnid_least_bits=least, partitions=[side.topic]
    )


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


@takes(Flow)
def _flow(side: Side, step: Flow) -> str:
    consumer = side.consumers.get(step.consumer)
    if consumer is None:
        return NOTHING
    side.tell(pb.CommandFlow(consumer_id=consumer.number, message_permits=step.permits))
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


@takes(Close)
def _close(side: Side, step: Close) -> str:
    consumer = side.consumers.get(step.consumer)
    if consumer is None:
        return NOTHING
    answer = told(side.ask(pb.CommandCloseConsumer(consumer_id=consumer.number, request_id=side.next_request())))
    side.note_failover(consumer)
    side.consumers.pop(step.consumer)
    return answer


@takes(Unsubscribe)
def _unsubscribe(side: Side, step: Unsubscribe) -> str:
    consumer = side.consumers.get(step.consumer)
    if consumer is None:
        return NOTHING
    answer = told(side.ask(pb.CommandUnsubscribe(consumer_id=consumer.number, request_id=side.next_request())))
    if answer == "ok":
        side.consumers.pop(step.consumer, None)
    return answer


@takes(Redeliver)
def _redeliver(side: Side, step: Redeliver) -> str:
    consumer = side.consumers.get(step.consumer)
    ids = [found for entry in step.entries if (found := side.message_id(entry)) is not None]
    if consumer is None or (step.entries and not ids):
        return NOTHING
    side.tell(pb.CommandRedeliverUnacknowledgedMessages(consumer_id=consumer.number, message_ids=ids))
    return "sent"


@takes(Seek)
def _seek(side: Side, step: Seek) -> str:
    consumer, to = side.consumers.get(step.consumer), side.message_id(step.to, step.index)
    if consumer is None or to is None:
        return NOTHING
    if step.index is not None and step.to >= 0:
        to.ack_set.extend(ack_set_without(side.entries[step.to].count, range(step.index + 1)))
    command = pb.CommandSeek(consumer_id=consumer.number, request_id=side.next_request(), message_id=to)
    side.note_failover(consumer)
    return told(side.ask(command))


@takes(SeekTime)
def _seek_time(side: Side, step: SeekTime) -> str:
    consumer = side.consumers.get(step.consumer)
    if consumer is None or step.entry >= len(side.entries):
        return NOTHING
    at_ms = side.entries[step.entry].publish_time_ms + step.plus_ms
    side.note_failover(consumer)
    return told(
        side.ask(
            pb.CommandSeek(consumer_id=consumer.number, request_id=side.next_request(), message_publish_time=at_ms)
        )
    )


@takes(LastId)
def _last_id(side: Side, step: LastId) -> str:
    consumer = side.consumers.get(step.consumer)
    if consumer is None:
        return NOTHING
    answer = side.ask(pb.CommandGetLastMessageId(consumer_id=consumer.number, request_id=side.next_request()))
    if isinstance(answer, pb.CommandError):
        return told(answer)
    return f"last {_name_of(side, answer.last_message_id)}"


def _name_of(side: Side, message: pb.MessageIdData) -> str:
    for entry in side.entries:
        if entry.id is not None and (entry.id.ledger_id, entry.id.entry_id) == (message.ledger_id, message.entry_id):
            return f"{entry.number}" if message.batch_index < 0 else f"{entry.number}.{message.batch_index}"
    return "none" if message.entry_id >= 2**63 - 1 else "another"


# --- acknowledgements -------------------------------------------------------------------------------------------------


@takes(Ack)
def _ack(side: Side, step: Ack) -> str:
    return _acknowledge(side, step, pb.CommandAck.Individual, lambda index: [index])


@takes(AckUpTo)
def _ack_up_to(side: Side, step: AckUpTo) -> str:
    return _acknowledge(side, step, pb.CommandAck.Cumulative, lambda index: range(index + 1))


def _acknowledge(side: Side, step: Ack | AckUpTo, kind: Any, done: Callable[[int], Any]) -> str:
    consumer, message = side.consumers.get(step.consumer), side.message_id(step.entry, step.index)
    if consumer is None or message is None:
        return NOTHING
    count = side.entries[step.entry].count
    if step.index is not None:
        message.ack_set.extend(ack_set_without(count, done(step.index)))
    if count > 1:
        message.batch_size = count
    command = pb.CommandAck(consumer_id=consumer.number, ack_type=kind, message_id=[message])
    if step.transaction:
        transaction = side.transactions.get(step.transaction)
        if transaction is None:
            return NOTHING
        answer = _register(side, consumer, transaction)
        if answer != "ok":
            return f"registration: {answer}"
        command.txnid_most_bits, command.txnid_least_bits = transaction.id
    if not step.answered and not step.transaction:
        side.tell(command)
        return "sent"
    command.request_id = side.next_request()
    return told(side.ask(command))


def _register(side: Side, consumer: Consumer, transaction: Transaction) -> str:
    subscription = consumer.subscribe.subscription
    if f"subscription {subscription}" in transaction.registered:
        return "ok"
    most, least = transaction.id
    answer = told(
        side.ask(
            pb.CommandAddSubscriptionToTxn(
                request_id=side.next_request(),
                txnid_most_bits=most,
                txnid_least_bits=least,
                subscription=[pb.Subscription(topic=side.topic, subscription=subscription)],
            )
        )
    )
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
    answer = side.ask(pb.CommandNewTxn(request_id=side.next_request(), txn_ttl_millis=timeout_ms, tc_id=0))
    if told(answer) == "ok":
        side.transactions[name] = Transaction((answer.txnid_most_bits, answer.txnid_least_bits))
    return told(answer)


@takes(Expire)
def _expire(side: Side, step: Expire) -> str:
    """Ask for a registration again and again: it is refused as soon as the transaction is over."""
    transaction = side.transactions.get(step.transaction)
    if transaction is None:
        return NOTHING
    for _ in range(60):
        answer = told(side.ask(_add_topic(side, transaction)))
        if answer != "ok":
            return "over"
        side.link.pass_time(side.link.short_s / 4)
    return "not over"


@takes(End)
def _end(side: Side, step: End) -> str:
    transaction = side.transactions.get(step.transaction)
    if transaction is None:
        return NOTHING
    most, least = transaction.id
    action = pb.COMMIT if step.commit else pb.ABORT
    return told(
        side.ask(
            pb.CommandEndTxn(
                request_id=side.next_request(), txnid_most_bits=most, txnid_least_bits=least, txn_action=action
            )
        )
    )


@takes(Reload)
def _reload(side: Side, step: Reload) -> str:
    side.reload()
    return "ok"
