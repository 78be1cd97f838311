"""ACK acknowledges messages: one by one or all up to one, at once or in a transaction, with an answer or without."""

from google.protobuf.message import Message

from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.engine.engine import Answer
from exacta.front.broker import Broker
from exacta.front.pieces import by_pieces
from exacta.front.words import words_of
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandAck, CommandAckResponse, ServerError
from exacta.pulsar.acknowledging import (
    MOST_PARTS,
    NOTHING_TO_ACKNOWLEDGE,
    Named,
    joined,
    name,
    named_up_to,
)
from exacta.pulsar.consumers import Consumer
from exacta.pulsar.context import Asked, PulsarRequest
from exacta.pulsar.errors import server_error
from exacta.pulsar.handler import Handler
from exacta.pulsar.needs import OPEN_TO_ALL
from exacta.pulsar.open_transactions import is_strict, told_of_ended
from exacta.pulsar.provisional_ids import resolve
from exacta.pulsar.transactions import is_transactional, name_of, transaction_of

MOST_NAMED = 5
"""The text of a refusal names this many messages."""

NEEDS = OPEN_TO_ALL
"""Nothing: the right to read was asked for when the consumer was opened."""


def handle(broker: Broker, command: CommandAck, request: PulsarRequest) -> None:
    """Acknowledge the messages; without a request id the client is not answered, nor is it told of a refusal."""
    consumer = request.open_consumer(command.consumer_id)
    if consumer is None:
        return
    wrong = _wrong_cumulatively(consumer, command)
    if wrong is not None:
        _refuse(request, consumer, command, ServerError.NotAllowedError, wrong)
        return
    found = Named()
    if command.ack_type == CommandAck.Cumulative:
        found.unclear = resolve(broker.engine.present, consumer.partition_id, command.message_id)
        before = named_up_to(broker.engine.lookups, consumer, command)
        found.is_whole = before is not None
        _acknowledge(broker, command, request, consumer, found, before or Offset(0))
        return
    by_pieces(
        request.in_steps,
        command.message_id,
        lambda ids: name(broker, consumer, command, ids, found),
        lambda: _acknowledge(broker, command, request, consumer, found, Offset(0)),
    )


def _acknowledge(
    broker: Broker, command: CommandAck, request: PulsarRequest, consumer: Consumer, found: Named, before: Offset
) -> None:
    """Acknowledge what is named, in the next step."""
    if found.unclear is not None and command.HasField("request_id"):
        _refuse(request, consumer, command, ServerError.NotAllowedError, found.unclear)
        return
    if found.is_too_much:
        _refuse_many(request, command)
        return
    runs = joined(found.runs)
    transaction_id = None
    if is_transactional(command):
        transaction_id = transaction_of(command)
        if transaction_id is None:
            _reject(request, consumer, command, Rejection.TRANSACTION_NOT_FOUND)
            return
        if not found.is_whole:
            _refuse(request, consumer, command, ServerError.NotAllowedError, "a message is not there (any more)")
            return
    elif not command.HasField("request_id"):
        request.connection.acknowledge_soon(consumer, runs, before)
        request.end()
        return

    def done(answer: Answer) -> None:
        is_plain = transaction_id is None
        if not isinstance(answer, Rejection) or (is_plain and answer in NOTHING_TO_ACKNOWLEDGE):
            _answer(request, command)
        else:
            _reject(request, consumer, command, told_of_ended(answer, strict=is_strict(broker)))

    request.connection.acknowledge(Asked(request, consumer, transaction_id, runs, before, done))


def _wrong_cumulatively(consumer: Consumer, command: CommandAck) -> str | None:
    """Say why this is no cumulative acknowledgement, if it says that it is one; None: it is right."""
    if command.ack_type != CommandAck.Cumulative:
        return None
    if not consumer.is_in_order:
        return "a shared subscription has no cumulative acknowledgements"
    return None if len(command.message_id) == 1 else "a cumulative acknowledgement names one message"


def _refuse_many(request: PulsarRequest, command: CommandAck) -> None:
    text = f"one ACK may name {MOST_PARTS} parts of entries that do not adjoin"
    if command.HasField("request_id"):
        request.refuse(ServerError.TooManyRequests, text)
    else:
        request.hang_up(text)


def _reject(request: PulsarRequest, consumer: Consumer, command: CommandAck, rejection: Rejection) -> None:
    _refuse(request, consumer, command, server_error(rejection), words_of(rejection))


def _refuse(request: PulsarRequest, consumer: Consumer, command: CommandAck, error: ServerError, reason: str) -> None:
    """Refuse an acknowledgement, and say which one: clients show the text beside a future that nobody may remember."""
    request.refuse(error, f"{reason}: {_described(consumer, command)}")


def _described(consumer: Consumer, command: CommandAck) -> str:
    """Name the messages of an ACK as clients print their ids, the subscription, the topic and the transaction."""
    shown = ", ".join(f"{each.ledger_id}:{each.entry_id}:{each.partition}" for each in command.message_id[:MOST_NAMED])
    more = len(command.message_id) - MOST_NAMED
    messages = f"{shown} and {more} more" if more > 0 else shown or "none"
    upto = "up to " if command.ack_type == CommandAck.Cumulative else ""
    inside = f" in {name_of(command)}" if is_transactional(command) else ""
    return f"{upto}message {messages} of subscription {consumer.subscription!r} on {consumer.topic}{inside}"


def _answer(request: PulsarRequest, command: CommandAck) -> None:
    if command.HasField("request_id"):
        request.reply(_response(command))
    else:
        request.end()


def _response(command: CommandAck) -> CommandAckResponse:
    answer = CommandAckResponse(consumer_id=command.consumer_id, request_id=command.request_id)
    if is_transactional(command):
        answer.txnid_least_bits, answer.txnid_most_bits = command.txnid_least_bits, command.txnid_most_bits
    return answer


def refused(command: CommandAck, error: ServerError, text: str) -> Message | None:
    """Refuse an acknowledgement, if its client wants an answer."""
    if not command.HasField("request_id"):
        return None
    answer = _response(command)
    answer.error, answer.message = error, text
    return answer


HANDLER = Handler(type=BaseCommand.ACK, needs=NEEDS, handle=handle, refused=refused)
