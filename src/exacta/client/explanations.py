"""Explain which transactions are open, whose they are, and what happened to a transactional id or a handle.

An Exacta answers all of it (Ask). Another cluster is asked by Kafka's own calls, broker by
broker, which know no owner, no first offset and no reasons.
"""

from collections.abc import Sequence

from exacta.client.ask import answers, ask
from exacta.client.deadline import Deadline
from exacta.client.handles import handle_name
from exacta.client.routing import Client
from exacta.client.transactions import (
    NO_TIMEOUT_MS,
    TransactionDescription,
    describe_transactions,
    list_transactions,
)
from exacta.readmodel.transactions import AskTransactions, Explanation, HeldPartition, Transactions


def explain(
    client: Client,
    transactional_ids: Sequence[str] | None = None,
    deadline: Deadline | None = None,
    *,
    handles: Sequence[int] = (),
) -> list[Explanation]:
    """Explain these transactional ids and handles, or all that is open; raises what `Client.call` raises.

    A handle of any other cluster than an Exacta is a transactional id of its name: only an Exacta has handles.
    """
    deadline = deadline or client.deadline()
    if answers(client, deadline):
        named = None if transactional_ids is None else tuple(transactional_ids)
        question = AskTransactions(transactional_ids=named, handles=tuple(handles))
        return list(ask(client, question, Transactions, "asking what transactions are open", deadline).transactions)
    if transactional_ids is None:
        transactional_ids = list_transactions(client, "", deadline=deadline)
    names = [*transactional_ids, *map(handle_name, handles)]
    found = describe_transactions(client, names, deadline)
    return [_from_kafka(each, found[each]) for each in names]


def _from_kafka(transactional_id: str, found: TransactionDescription | None) -> Explanation:
    if found is None:
        return Explanation(
            transactional_id=transactional_id, state="", producer_id=-1, producer_epoch=-1, gives_reasons=False
        )
    limited = found.start_ms >= 0 and found.timeout_ms != NO_TIMEOUT_MS
    return Explanation(
        transactional_id=transactional_id,
        state=found.state,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        timeout_ms=found.timeout_ms,
        start_ms=None if found.start_ms < 0 else found.start_ms,
        deadline_ms=found.start_ms + found.timeout_ms if limited else None,
        partitions=tuple(HeldPartition(topic=at.topic, partition=at.partition) for at in sorted(found.partitions)),
        gives_reasons=False,
    )
