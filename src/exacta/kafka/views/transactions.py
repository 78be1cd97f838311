"""The view of transactions: what transactional ids are doing, whose they are, and what happened to them.

DescribeTransactions has no room for owner, deadline and first offsets, and no Kafka answer says why a producer was
fenced. The asker needs DESCRIBE on the transactional ids that it names; what it may not see of others is left out.
"""

from functools import partial

from msgspec import json, structs

from exacta.core.ids import TransactionId
from exacta.core.state.state import State
from exacta.core.transactions.description import explain_handle, explain_open_transaction, explain_transaction
from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.listing import describe_all
from exacta.kafka.views.view import Asker, Done, encoded
from exacta.ports.authorizer import ResourceKind
from exacta.readmodel.transactions import AskTransactions, Explanation, Transactions


def tell(broker: Broker, context: RequestContext, asked: AskTransactions, done: Done) -> None:
    """Explain the ids and handles that are named, or what is open."""
    asker = Asker(broker, context)
    named = asked.transactional_ids
    refused = asker.refusal(ResourceKind.TRANSACTIONAL_ID, *(named or ()))
    if refused is not None:
        done(refused)
        return

    def names(state: State) -> list[str | TransactionId]:
        if named is None:
            return list(state.transactions)
        return [*dict.fromkeys(named), *map(TransactionId, dict.fromkeys(asked.handles))]

    def explained(state: State, now_ms: int, name: str | TransactionId) -> Explanation | None:
        found = _explained(state, name, is_open=named is None)
        seen = None if found is None else _seen(asker, found)
        return None if seen is None else encoded(seen)

    def told(found: list[Explanation]) -> None:
        done(json.encode(Transactions(transactions=tuple(found))))

    describe_all(broker, context, names, explained, told)


def _explained(state: State, name: str | TransactionId, *, is_open: bool) -> Explanation | None:
    if isinstance(name, str):
        return explain_transaction(state, name)
    return explain_open_transaction(state, name) if is_open else explain_handle(state, name)


def _seen(asker: Asker, found: Explanation) -> Explanation | None:
    """Leave out what the asker may not see; None: all of it."""
    if asker.sees_all:
        return found
    if not asker.sees(ResourceKind.TRANSACTIONAL_ID, found.transactional_id):
        return None
    topic, group = partial(asker.sees, ResourceKind.TOPIC), partial(asker.sees, ResourceKind.GROUP)
    return structs.replace(
        found,
        partitions=tuple(each for each in found.partitions if topic(each.topic)),
        acknowledged=tuple(each for each in found.acknowledged if topic(each.topic)),
        groups=tuple(filter(group, found.groups)),
    )
