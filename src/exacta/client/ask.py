"""Ask an Exacta what no API of Kafka has room for, in the words of the read model."""

from typing import TypeVar

from msgspec import Struct, json

from exacta.client.deadline import Deadline
from exacta.client.routing import Anyone, Client, Coordinator
from exacta.protocol.kafka.messages.k17792_ask import AskRequest
from exacta.readmodel.question import Question

X = TypeVar("X", bound=Struct)


def answers(client: Client, deadline: Deadline | None = None) -> bool:
    """Return whether the cluster is an Exacta that is asked so."""
    return client.offers(Anyone(), AskRequest(), deadline)


def ask(
    client: Client,
    question: Question,
    answer: type[X],
    what: str,
    deadline: Deadline | None = None,
    target: Anyone | Coordinator | None = None,
) -> X:
    """Return the answer to a question; `what` says what for, in errors. Raises what `Client.call` raises."""
    reply = client.call(
        target or Anyone(),
        AskRequest(question=json.encode(question)),
        what=what,
        codes=lambda reply: (reply.error_code,),
        deadline=deadline,
    )
    return json.decode(reply.answer, type=answer)
