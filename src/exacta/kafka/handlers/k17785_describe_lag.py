"""DescribeLag counts the records that groups have yet to read, and names who holds back others. Exacta's own.

Offsets cannot say it: they number markers and aborted records too (`core/groups/lag.py`), which is why tools that
subtract them show a lag that never becomes 0 (decision 0013). `k17784_end_transactions` says why our own keys begin
there.
"""

from functools import partial

from exacta.core.groups.lag import PartitionLag, lag_of_group, places_of_group
from exacta.core.state.state import State
from exacta.front.broker import Broker
from exacta.front.turns import STEP_ELEMENTS, Steps, Until
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Shown
from exacta.kafka.request_size import first_time
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k17785_describe_lag as wire
from exacta.protocol.kafka.messages.k17785_describe_lag import (
    DescribeLagRequest,
    DescribeLagResponse,
    GroupLag,
    OpenTransaction,
    TopicLag,
)

KEY = ApiKey.DESCRIBE_LAG
MIN_VERSION = 0
MAX_VERSION = 0

MOST_IN_A_STEP = 200
"""The most partitions that are looked at in one step."""

NEEDS = (
    Each(Operation.DESCRIBE, ResourceKind.GROUP, "groups", "groups", name=""),
    Shown(Operation.DESCRIBE, ResourceKind.TOPIC, "groups.topics"),
    Shown(
        Operation.DESCRIBE,
        ResourceKind.TRANSACTIONAL_ID,
        "groups.topics.partitions.open_transactions",
        name="transactional_id",
    ),
)


def handle(broker: Broker, request: DescribeLagRequest, context: RequestContext, reply: Reply) -> None:
    """Answer each partition from one state, once it lies in the journal, where the records are counted."""
    response = DescribeLagResponse(now_ms=broker.engine.now_ms(), groups=[])
    context.in_steps(_describe(broker, context, list(filter(first_time(), request.groups)), response, reply))


def _describe(
    broker: Broker, context: RequestContext, wanted: list[str], response: DescribeLagResponse, reply: Reply
) -> Steps:
    for group_id in wanted:
        group = GroupLag(group_id=group_id)
        response.groups.append(group)
        places = broker.engine.view(partial(_places, group_id))
        if places is None:
            group.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            places = []
        topics: dict[str, TopicLag] = {}
        for begin in range(0, len(places), MOST_IN_A_STEP):
            view = partial(_lags, group_id, places[begin : begin + MOST_IN_A_STEP])
            done = Until()
            broker.read(context, view, done.set)
            for lag in (yield done):
                topic = topics.setdefault(lag.topic, TopicLag(name=lag.topic, partitions=[]))
                topic.partitions.append(_partition(broker, lag))
        group.topics = list(topics.values())
        context.is_long = context.is_long or len(places) > STEP_ELEMENTS
        yield None
    broker.when_durable(context, lambda: reply(response))


def _places(group_id: str, state: State, now_ms: int) -> list[tuple[str, int]] | None:
    return places_of_group(state, group_id) if state.has_group(group_id) else None


def _lags(group_id: str, places: list[tuple[str, int]], state: State, now_ms: int) -> list[PartitionLag]:
    return list(lag_of_group(state, group_id, places))


def _partition(broker: Broker, lag: PartitionLag) -> wire.PartitionLag:
    count, stable = broker.engine.lookups.count_unaborted, lag.last_stable_offset
    from_there = max(lag.next_offset, stable)
    return wire.PartitionLag(
        partition_index=lag.index,
        committed_offset=lag.committed_offset,
        commit_is_pending=lag.commit_is_pending,
        log_start_offset=lag.log_start_offset,
        visible_end_offset=broker.engine.lookups.visible_end(lag.topic, lag.index, stable),
        last_stable_offset=stable,
        high_watermark=lag.high_watermark,
        unread_records=count(lag.partition_id, lag.next_offset, stable),
        held_back_records=count(lag.partition_id, from_there, lag.high_watermark),
        open_transactions=[
            OpenTransaction(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                first_offset=each.first_offset,
                start_ms=each.start_ms,
            )
            for each in lag.open_transactions
        ],
    )


def refused(request: DescribeLagRequest, code: ErrorCode, version: int) -> DescribeLagResponse:
    """Refuse every group of a request."""
    return DescribeLagResponse(groups=[GroupLag(group_id=group_id, error_code=code) for group_id in request.groups])


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    refused=refused,
    plain_error=DescribeLagResponse,
)
