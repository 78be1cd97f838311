"""The view of a group's lag: the records that it has yet to read, and who holds back others.

Offsets cannot say it: they number markers and aborted records too (`core/groups/lag.py`), which is why tools that
subtract them show a lag that never becomes 0 (decision 0013). The asker needs DESCRIBE on the group; topics and
transactions that it may not see are left out.
"""

from functools import partial

from msgspec import json, structs

from exacta.core.groups.lag import CountedPartition
from exacta.core.queries.groups import lags, places_read
from exacta.front.broker import Broker
from exacta.front.turns import STEP_ELEMENTS, Steps, Until
from exacta.kafka.context import RequestContext
from exacta.kafka.views.view import Asker, Done, encoded
from exacta.ports.authorizer import ResourceKind
from exacta.protocol.kafka.errors import ErrorCode
from exacta.readmodel.groups import AskLag, GroupLag, Lag

MOST_IN_A_STEP = 200
"""The most partitions that are looked at in one step."""


def tell(broker: Broker, context: RequestContext, asked: AskLag, done: Done) -> None:
    """Answer each partition from one state, once it lies in the journal, where the records are counted."""
    asker = Asker(broker, context)
    refused = asker.refusal(ResourceKind.GROUP, asked.group)
    if refused is not None:
        done(refused)
        return
    context.in_steps(_steps(broker, context, asker, asked.group, done))


def _steps(broker: Broker, context: RequestContext, asker: Asker, group: str, done: Done) -> Steps:
    places = broker.engine.view(partial(places_read, group=group))
    answer: bytes | ErrorCode = ErrorCode.GROUP_ID_NOT_FOUND
    if places is not None:
        context.is_long = len(places) > STEP_ELEMENTS
        seen = [each for each in places if asker.sees_all or asker.sees(ResourceKind.TOPIC, each[0])]
        found: list[Lag] = []
        for begin in range(0, len(seen), MOST_IN_A_STEP):
            looked = Until()
            part = seen[begin : begin + MOST_IN_A_STEP]
            broker.read(context, partial(lags, group=group, places=part), looked.set)
            counted = (_count(broker, each) for each in (yield looked))
            found.extend(encoded(asker.blocking(each)) for each in counted)
            yield None
        answer = json.encode(GroupLag(group=group, partitions=tuple(found)))
    broker.when_durable(context, lambda: done(answer))


def _count(broker: Broker, found: CountedPartition) -> Lag:
    lookups, lag = broker.engine.lookups, found.lag
    stable = lag.last_stable_offset
    from_there = max(found.next_offset, stable)
    return structs.replace(
        lag,
        visible_end_offset=lookups.visible_end(lag.topic, lag.partition, stable),
        unread=lookups.count_unaborted(found.partition_id, found.next_offset, stable),
        held_back=lookups.count_unaborted(found.partition_id, from_there, lag.high_watermark),
    )
