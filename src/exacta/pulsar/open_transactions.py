"""The check of a transaction and of topics before a client uses them together."""

from collections.abc import Callable, Sequence
from typing import Final

from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.core.transactions.handle import open_handle
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.pulsar.broker import PulsarBroker
from exacta.pulsar.context import PulsarRequest
from exacta.pulsar.topic_names import kafka_name
from exacta.pulsar.topics import parsed_name
from exacta.pulsar.transactions import InTransaction, transaction_of

MOST_TOPICS: Final = 10_000
"""The topics that one command may name; each is looked up on the event loop."""


def when_open(
    broker: PulsarBroker,
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
    for topic in topics:
        name = parsed_name(request, topic)
        if name is None:
            return
        count = broker.engine.present.partition_count(kafka_name(name))
        if (name.partition or 0) >= count:
            text = f"{name} is not there"
            broker.when_durable(request, lambda: request.refuse(ServerError.TopicNotFound, text))  # noqa: B023
            return

    def fault(state: State, now_ms: int) -> Rejection | None:
        found = open_handle(state, transaction_id, now_ms)
        return found if isinstance(found, Rejection) else None

    def answer(rejection: Rejection | None) -> None:
        if rejection is None:
            done()
        else:
            request.reject(rejection)

    broker.read(request, fault, answer)
