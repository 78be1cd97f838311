"""ResetSubscription lets a Pulsar subscription go on elsewhere, also with consumers connected. Exacta's own.

It is what SEEK is for a consumer, for an operator who is none. `k17784_end_transactions` says why our own keys begin
where they do.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from exacta.core.commands import Seek
from exacta.core.ids import Offset
from exacta.core.queries.subscription_moves import PlannedMove, planned_moves
from exacta.core.rejections import Rejection
from exacta.front.bounded_parallel import Ended, few_at_once
from exacta.front.broker import Broker
from exacta.front.offset_for_time import MAX_SEARCHES_IN_FLIGHT, position_of_time
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Whole
from exacta.kafka.parts import divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k17788_reset_subscription import (
    PartitionReset,
    PartitionResult,
    ResetSubscriptionRequest,
    ResetSubscriptionResponse,
    TopicResult,
)

NEEDS = (
    Each(Operation.READ, ResourceKind.TOPIC, "topics", "topics"),
    Whole(Operation.READ, ResourceKind.GROUP, lambda request: (request.subscription,)),
)


def handle(broker: Broker, request: ResetSubscriptionRequest, context: RequestContext, reply: Reply) -> None:
    """Move the subscription in each partition for itself, once the records of all times have been looked for.

    All is decided in one step, so that nobody comes between.
    """
    targets: dict[int, Offset | Rejection] = {}

    def look(number: int, topic: str, wanted: PartitionReset, ended: Ended) -> None:
        def found(target: Offset | Rejection) -> None:
            targets[number] = target
            ended()

        if wanted.timestamp_ms < 0:
            found(Offset(wanted.offset))
        else:
            position_of_time(broker, context, (topic, wanted.partition_index), wanted.timestamp_ms, found)

    wanted = [(topic.name, each) for topic in request.topics for each in topic.partitions]
    work = [partial(look, number, *each) for number, each in enumerate(wanted)]
    few_at_once(work, MAX_SEARCHES_IN_FLIGHT, lambda: _reset(broker, request, context, reply, targets))


def _reset(
    broker: Broker,
    request: ResetSubscriptionRequest,
    context: RequestContext,
    reply: Reply,
    targets: Mapping[int, Offset | Rejection],
) -> None:
    wanted = [(topic.name, each.partition_index) for topic in request.topics for each in topic.partitions]
    seeks = [
        target
        if isinstance(target := targets[number], Rejection)
        else Seek(topic=topic, partition=index, subscription=request.subscription, to=target)
        for number, (topic, index) in enumerate(wanted)
    ]
    commands = [each for each in seeks if isinstance(each, Seek)]
    before: list[PlannedMove | Rejection] = []

    def answer(outcomes: Iterable[Answer | PlannedMove]) -> None:
        of_commands = iter(outcomes)
        results = iter(
            [
                _result(context, plan, each if isinstance(each, Rejection) else next(of_commands))
                for each, plan in zip(seeks, before, strict=True)
            ]
        )
        reply(
            ResetSubscriptionResponse(
                topics=[
                    TopicResult(name=topic.name, partitions=[_at(next(results), each) for each in topic.partitions])
                    for topic in request.topics
                ]
            )
        )

    broker.read(context, partial(planned_moves, wanted=seeks), before.extend)
    if request.validate_only or not commands:
        broker.when_durable(
            context,
            lambda: answer(plan for each, plan in zip(seeks, before, strict=True) if isinstance(each, Seek)),
        )
    else:
        broker.submit(context, commands, answer)


def _result(context: RequestContext, plan: PlannedMove | Rejection, outcome: Answer | PlannedMove) -> PartitionResult:
    rejection = outcome if isinstance(outcome, Rejection) else plan
    if isinstance(rejection, Rejection):
        return PartitionResult(error_code=context.error_code(rejection))
    return PartitionResult(
        old_position=rejection.position, position=rejection.target, closed_consumers=rejection.consumers
    )


def _at(result: PartitionResult, wanted: PartitionReset) -> PartitionResult:
    result.partition_index = wanted.partition_index
    return result


HANDLER = Handler(
    ApiKey.RESET_SUBSCRIPTION,
    versions=(0, 0),
    needs=NEEDS,
    at_follower=NOT_CONTROLLER,
    handle=handle,
    parts=(divided_by(NEEDS[0], inner="partitions", inner_answers="partitions"),),
)
