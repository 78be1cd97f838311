"""Transactions as commands name them: which one of the core it is, and whether it may be used together with topics.

Pulsar's id of a transaction is the number of its coordinator, which is 0, and the transaction's id in the core. This is
what a client is told that wants to use a transaction together with topics:

    the transaction       its topics are there      one of them is not
    is open               success                   TopicNotFound
    is prepared           InvalidTxnStatus          InvalidTxnStatus
    has ended             InvalidTxnStatus *        TransactionNotFound
    is unknown            TransactionNotFound       TransactionNotFound

* TransactionNotFound with `pulsar.transaction.repeat=strict`, as from Apache Pulsar, which remembers no outcome.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypedDict

from exacta.core.ids import TransactionId
from exacta.core.queries.open_transactions import why_not_open
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.front.pieces import by_pieces
from exacta.front.transaction_rights import lacking_for
from exacta.front.words import words_of
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.protocol.pulsar.transaction_ids import InTransaction, TxnId
from exacta.pulsar.context import PulsarRequest
from exacta.pulsar.errors import server_error
from exacta.pulsar.topic_names import NamedTopic
from exacta.pulsar.topics import read_topic

COORDINATOR_NUMBER: Final = 0
"""There is one coordinator."""

STRICT: Final = "strict"
"""The value of `pulsar.transaction.repeat` with which a client hears of no outcome that is remembered."""

MOST_TOPICS: Final = 10_000
"""The topics that one command may name; each is looked up on the event loop."""


class TransactionRequest(InTransaction, Protocol):
    """A command that names a transaction, and whose client waits for the answer to this request."""

    request_id: int


class NamedAgain(TypedDict):
    """The fields by which an answer names its request and its transaction."""

    request_id: int
    txnid_most_bits: int
    txnid_least_bits: int


def named_again(command: TransactionRequest) -> NamedAgain:
    """Return the fields by which an answer names its request and its transaction: as the command has them."""
    return {
        "request_id": command.request_id,
        "txnid_most_bits": command.txnid_most_bits,
        "txnid_least_bits": command.txnid_least_bits,
    }


def transaction_of(named: TxnId) -> TransactionId | None:
    """Return the transaction of an id, or None if it is not of this coordinator."""
    return TransactionId(named.least_bits) if named.most_bits == COORDINATOR_NUMBER else None


def when_open(
    broker: Broker,
    request: PulsarRequest,
    named: TxnId,
    topics: Sequence[str],
    done: Callable[[TransactionId], None],
) -> None:
    """Call back if the transaction is open, the client may use it, and the topics are there; refuse it otherwise."""
    transaction_id = transaction_of(named)
    if transaction_id is None:
        request.reject(Rejection.TRANSACTION_NOT_FOUND)
        return
    lack = lacking_for(broker, request, transaction_id)
    if lack is not None:
        request.refuse(ServerError.AuthorizationError, lack)
        return
    if len(topics) > MOST_TOPICS:
        request.refuse(ServerError.NotAllowedError, f"one command may name {MOST_TOPICS} topics")
        return
    missing: NamedTopic | None = None
    is_refused = False

    def look(piece: Sequence[str]) -> None:
        nonlocal missing, is_refused
        for each in () if is_refused else piece:
            topic = read_topic(request, each)
            if topic is None:
                is_refused = True
                return
            if missing is None and topic.index >= broker.engine.advice.partition_count(topic.log_name):
                missing = topic

    def ask() -> None:
        if not is_refused:
            broker.read(request, partial(why_not_open, transaction_id=transaction_id), answer)

    def answer(rejection: Rejection | None) -> None:
        if rejection is not None:
            told = told_of_ended(rejection, strict=missing is not None or is_strict(broker))
            request.refuse(server_error(told), f"{words_of(told)}: {named}")
        elif missing is not None:
            request.refuse(ServerError.TopicNotFound, f"{missing} is not there")
        else:
            done(transaction_id)

    by_pieces(request.in_steps, topics, look, ask)


def is_strict(broker: Broker) -> bool:
    """Return whether clients hear of no outcome that is remembered."""
    return broker.configuration.pulsar_transaction_repeat == STRICT


def told_of_ended(rejection: Rejection, *, strict: bool) -> Rejection:
    """Return the rejection that a client is told, which is not the core's if that tells of an outcome."""
    return Rejection.TRANSACTION_NOT_FOUND if strict and rejection is Rejection.TRANSACTION_ENDED else rejection
