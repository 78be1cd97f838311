"""The check of a transaction and of topics before a client uses them together, and what is told of one that has ended.

    the transaction       its topics are there      one of them is not
    is open               success                   TopicNotFound
    is prepared           InvalidTxnStatus          InvalidTxnStatus
    has ended             InvalidTxnStatus *        TransactionNotFound
    is unknown            TransactionNotFound       TransactionNotFound

* TransactionNotFound with `pulsar.transaction.repeat=strict`, as from Apache Pulsar, which remembers no outcome.
"""

from collections.abc import Callable, Sequence
from typing import Final

from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.core.transactions.handle import open_handle
from exacta.front.broker import Broker
from exacta.front.pieces import by_pieces
from exacta.front.words import words_of
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.protocol.pulsar.topic_names import TopicName
from exacta.pulsar.context import PulsarRequest
from exacta.pulsar.errors import server_error
from exacta.pulsar.topic_names import kafka_name
from exacta.pulsar.topics import parsed_name
from exacta.pulsar.transactions import InTransaction, name_of, transaction_of

STRICT: Final = "strict"
"""The value of `pulsar.transaction.repeat` with which a client hears of no outcome that is remembered."""

MOST_TOPICS: Final = 10_000
"""The topics that one command may name; each is looked up on the event loop."""


def when_open(
    broker: Broker,
    request: PulsarRequest,
    command: InTransaction,
    topics: Sequence[str],
    done: Callable[[], None],
) -> None:
    """Call back if the transaction of the command is open and the topics are there; refuse the command otherwise."""
    transaction_id = transaction_of(command)
    if transaction_id is None:
        request.reject(Rejection.TRANSACTION_NOT_FOUND)
        return
    if len(topics) > MOST_TOPICS:
        request.refuse(ServerError.NotAllowedError, f"one command may name {MOST_TOPICS} topics")
        return
    missing: TopicName | None = None
    is_refused = False

    def look(piece: Sequence[str]) -> None:
        nonlocal missing, is_refused
        for topic in () if is_refused else piece:
            name = parsed_name(request, topic)
            if name is None:
                is_refused = True
                return
            if missing is None and (name.partition or 0) >= broker.engine.advice.partition_count(kafka_name(name)):
                missing = name

    def ask() -> None:
        if not is_refused:
            broker.read(request, fault, answer)

    def fault(state: State, now_ms: int) -> Rejection | None:
        found = open_handle(state, transaction_id, now_ms)
        if not isinstance(found, Rejection):
            return None
        return told_of_ended(found, strict=missing is not None or is_strict(broker))

    def answer(rejection: Rejection | None) -> None:
        if rejection is not None:
            request.refuse(server_error(rejection), f"{words_of(rejection)}: {name_of(command)}")
        elif missing is not None:
            request.refuse(ServerError.TopicNotFound, f"{missing} is not there")
        else:
            done()

    by_pieces(request.in_steps, topics, look, ask)


def is_strict(broker: Broker) -> bool:
    """Return whether clients hear of no outcome that is remembered."""
    return broker.configuration.pulsar_transaction_repeat == STRICT


def told_of_ended(rejection: Rejection, *, strict: bool) -> Rejection:
    """Return the rejection that a client is told, which is not the core's if that tells of an outcome."""
    return Rejection.TRANSACTION_NOT_FOUND if strict and rejection is Rejection.TRANSACTION_ENDED else rejection
