"""The view of transactions: what transactional ids are doing, whose they are, and what happened to them.

DescribeTransactions has no room for owner, deadline and first offsets, and no Kafka answer says why a producer was
fenced. The asker needs DESCRIBE on the transactional ids that it names; what it may not see of others is left out.
"""

from functools import partial

from msgspec import json, structs

from exacta.core.ids import TransactionId
from exacta.core.queries.open_transactions import open_transaction_ids
from exacta.core.queries.transactions import explained, explained_while_open
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

    def seen(name: str | TransactionId, found: Explanation) -> Explanation | None:
        told = _seen(asker, found)
        return None if told is None else encoded(told)

    def told(found: list[Explanation]) -> None:
        done(json.encode(Transactions(transactions=tuple(found))))

    if named is None:
        open_ids = broker.engine.advice.look(open_transaction_ids)
        describe_all(broker, context, open_ids, explained_while_open, seen, told)
    else:
        names: list[str | TransactionId] = [*dict.fromkeys(named), *map(TransactionId, dict.fromkeys(asked.handles))]
        describe_all(broker, context, names, explained, seen, told)


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
