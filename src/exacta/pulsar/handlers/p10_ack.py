"""ACK acknowledges messages: one by one or all up to one, at once or in a transaction, with an answer or without."""

from functools import partial

from google.protobuf.message import Message

from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.front.pieces import by_pieces
from exacta.front.transaction_rights import lacking_for
from exacta.front.words import words_of
from exacta.ports.log import Answer
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandAck, CommandAckResponse, ServerError
from exacta.protocol.pulsar.transaction_ids import TxnId, txn_id_of_part
from exacta.pulsar.acknowledging import MOST_PARTS, NOTHING_TO_ACKNOWLEDGE, joined, name, name_up_to
from exacta.pulsar.at_follower import NOT_OPEN
from exacta.pulsar.context import Ack, Handler, PulsarRequest
from exacta.pulsar.errors import server_error
from exacta.pulsar.needs import OPEN_TO_ALL
from exacta.pulsar.transactions import is_strict, told_of_ended, transaction_of

MOST_NAMED = 5
"""The text of a refusal names this many messages."""

NEEDS = OPEN_TO_ALL
"""Nothing: the right to read was asked for when the consumer was opened, and `lacking_for` asks for the transaction."""


def handle(broker: Broker, command: CommandAck, request: PulsarRequest) -> None:
    """Acknowledge the messages; without a request id the client is not answered, nor is it told of a refusal."""
    consumer = request.open_consumer(command.consumer_id)
    if consumer is None:
        return
    txn_id = txn_id_of_part(command)
    ack = Ack(
        request=request,
        consumer=consumer,
        ids=command.message_id,
        is_cumulative=command.ack_type == CommandAck.Cumulative,
        request_id=command.request_id if command.HasField("request_id") else None,
        txn_id=txn_id,
        transaction=None if txn_id is None else transaction_of(txn_id),
        done=_done,
    )
    if not ack.is_cumulative:
        by_pieces(request.in_steps, ack.ids, lambda ids: name(broker, ack, ids), lambda: _acknowledge(broker, ack))
    elif not consumer.is_in_order:
        _refuse(ack, ServerError.NotAllowedError, "a shared subscription has no cumulative acknowledgements")
    elif len(ack.ids) != 1:
        _refuse(ack, ServerError.NotAllowedError, "a cumulative acknowledgement names one message")
    else:
        name_up_to(broker, ack)
        _acknowledge(broker, ack)


def _acknowledge(broker: Broker, ack: Ack) -> None:
    """Acknowledge what is named, in the next step."""
    if ack.unclear is not None and ack.request_id is not None:
        broker.when_durable(ack.request, partial(_refuse, ack, ServerError.NotAllowedError, ack.unclear))
    elif ack.is_too_much:
        _refuse_many(ack)
    elif ack.txn_id is not None and ack.transaction is None:
        _reject(ack, Rejection.TRANSACTION_NOT_FOUND)
    elif ack.transaction is not None and (lack := lacking_for(broker, ack.request, ack.transaction)) is not None:
        _refuse(ack, ServerError.AuthorizationError, lack)
    elif ack.txn_id is not None and not ack.is_whole:
        reason = "a message is not there (any more)"
        broker.when_durable(ack.request, partial(_refuse, ack, ServerError.NotAllowedError, reason))
    else:
        ack.runs = joined(ack.runs)
        ack.request.connection.acknowledge(ack)
        if ack.is_soon:
            ack.request.end()


def _done(ack: Ack, answer: Answer) -> None:
    is_plain = ack.transaction is None
    if isinstance(answer, Rejection) and not (is_plain and answer in NOTHING_TO_ACKNOWLEDGE):
        _reject(ack, told_of_ended(answer, strict=is_strict(ack.request.shared.broker)))
    elif ack.request_id is None:
        ack.request.end()
    else:
        ack.request.reply(_response(ack.consumer.number, ack.request_id, ack.txn_id))


def _refuse_many(ack: Ack) -> None:
    text = f"one ACK may name {MOST_PARTS} parts of entries that do not adjoin"
    if ack.request_id is None:
        ack.request.hang_up(text)
    else:
        ack.request.refuse(ServerError.TooManyRequests, text)


def _reject(ack: Ack, rejection: Rejection) -> None:
    _refuse(ack, server_error(rejection), words_of(rejection))


def _refuse(ack: Ack, error: ServerError, reason: str) -> None:
    """Refuse an acknowledgement, and say which one: clients show the text beside a future that nobody may remember."""
    ack.request.refuse(error, f"{reason}: {_described(ack)}")


def _described(ack: Ack) -> str:
    """Name the messages of an ACK as clients print their ids, the subscription, the topic and the transaction."""
    shown = ", ".join(f"{each.ledger_id}:{each.entry_id}:{each.partition}" for each in ack.ids[:MOST_NAMED])
    more = len(ack.ids) - MOST_NAMED
    messages = f"{shown} and {more} more" if more > 0 else shown or "none"
    upto = "up to " if ack.is_cumulative else ""
    inside = "" if ack.txn_id is None else f" in {ack.txn_id}"
    return f"{upto}message {messages} of subscription {ack.consumer.subscription!r} on {ack.consumer.topic}{inside}"


def _response(consumer_id: int, request_id: int, txn_id: TxnId | None) -> CommandAckResponse:
    answer = CommandAckResponse(consumer_id=consumer_id, request_id=request_id)
    if txn_id is not None:
        answer.txnid_least_bits, answer.txnid_most_bits = txn_id.least_bits, txn_id.most_bits
    return answer


def refused(command: CommandAck, error: ServerError, text: str) -> Message | None:
    """Refuse an acknowledgement, if its client wants an answer."""
    if not command.HasField("request_id"):
        return None
    answer = _response(command.consumer_id, command.request_id, txn_id_of_part(command))
    answer.error, answer.message = error, text
    return answer


HANDLER = Handler(type=BaseCommand.ACK, needs=NEEDS, at_follower=NOT_OPEN, handle=handle, refused=refused)
