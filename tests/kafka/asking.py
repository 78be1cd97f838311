"""Questions to the read model over the wire (Ask)."""

from typing import Any, TypeVar

from msgspec import Struct, json

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17792_ask import AskRequest
from exacta.readmodel.groups import AskLag, GroupLag, Lag
from exacta.readmodel.question import Question
from exacta.readmodel.subscriptions import AskSubscriptions, Subscriptions
from exacta.readmodel.transactions import AskTransactions, Explanation, Transactions
from tests.kafka.wire import Wire

X = TypeVar("X", bound=Struct)


def question(asked: Question) -> AskRequest:
    return AskRequest(question=json.encode(asked))


def ask(wire: Wire, asked: Question, answer: type[X]) -> X:
    reply = wire.ask(question(asked), 0)
    assert reply.error_code == ErrorCode.NONE
    return json.decode(reply.answer, type=answer)


def refusal(wire: Wire, asked: Question) -> int:
    reply = wire.ask(question(asked), 0)
    assert reply.answer == b""
    return int(reply.error_code)


def explain(wire: Wire, *transactional_ids: str, handles: tuple[int, ...] = ()) -> tuple[Explanation, ...]:
    """Explain these, or all that is open."""
    named = transactional_ids if transactional_ids or handles else None
    return ask(wire, AskTransactions(transactional_ids=named, handles=handles), Transactions).transactions


def lag(wire: Wire, group: str = "g") -> tuple[Lag, ...]:
    found = ask(wire, AskLag(group=group), GroupLag)
    assert (found.group, found.exact) == (group, True)
    return found.partitions


def subscriptions(wire: Wire, **fields: Any) -> Subscriptions:
    return ask(wire, AskSubscriptions(**{"has_details": True} | fields), Subscriptions)
