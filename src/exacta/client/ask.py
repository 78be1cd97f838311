"""Ask an Exacta what no API of Kafka has room for, in the words of the read model."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec import Struct, json, to_builtins

from exacta.client.deadline import Deadline
from exacta.client.routing import Anyone, Client, Controller, Coordinator
from exacta.protocol.kafka.codec import EncodeError
from exacta.protocol.kafka.messages.k17792_ask import AskRequest
from exacta.readmodel.question import Question

X = TypeVar("X", bound=Struct)

LONGEST_STRING = 32_767
"""The most bytes of a name in Kafka's protocol."""


def answers(client: Client, deadline: Deadline | None = None) -> bool:
    """Return whether the cluster is an Exacta that is asked so."""
    return client.offers(Controller(), AskRequest(), deadline)


def ask(
    client: Client,
    question: Question,
    answer: type[X],
    what: str,
    deadline: Deadline | None = None,
    target: Coordinator | Anyone | None = None,
) -> X:
    """Return the answer to a question; `what` says what for, in errors. Raises what `Client.call` raises."""
    reply = client.call(
        Controller() if target is None else target,
        AskRequest(question=_encoded(question)),
        what=what,
        codes=lambda reply: (reply.error_code,),
        deadline=deadline,
    )
    return json.decode(reply.answer, type=answer)


def _encoded(question: Question) -> bytes:
    """Return a question as it is sent; raises EncodeError for a name that no request of Kafka could say either."""
    plain = to_builtins(question)
    for name in _strings(plain):
        try:
            size = len(name.encode())
        except UnicodeEncodeError as error:
            raise EncodeError(str(error)) from error
        if size > LONGEST_STRING:
            raise EncodeError(f"a name has {size} bytes, and may have {LONGEST_STRING}")
    return json.encode(plain)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _strings(list(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)
