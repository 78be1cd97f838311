"""ConsumerGroupHeartbeat carries all that a member of the consumer protocol says and is told (KIP-848).

A pattern matches those topics that one member may describe: the member whose heartbeat is the first one after the
topics or the subscriptions have changed. This is how Apache Kafka does it. A member that is given partitions of a topic
that it may not describe itself is not told of them, unlike there, and nobody reads these partitions.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from msgspec.structs import replace

from exacta.core.commands import ConsumerHeartbeat
from exacta.core.groups.consumer.heartbeat import heartbeat
from exacta.core.groups.consumer.rehearsal import Rehearsed
from exacta.core.rejections import Rejection
from exacta.core.replies import ConsumerHeartbeatDone
from exacta.core.values.consumer_groups import JOINING_EPOCH, LEFT_FOR_A_WHILE_EPOCH
from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.kafka.access import allows, describable_topics
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Inside, Whole, group_id
from exacta.kafka.pieces import by_pieces
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

CLIENTS_OWN_ID_SINCE = 1  # KIP-1082
MOST_REHEARSALS = 5
"""A heartbeat is decided in one step where topics or members have changed during this many rehearsals."""

MESSAGES = {
    Rejection.UNKNOWN_MEMBER_ID: "Nobody of this member id, or instance id, is a member of the group: join again.",
    Rejection.GROUP_ID_NOT_FOUND: (
        "There is no group of this id, or it is one of the classic protocol that cannot become one of this protocol: "
        "its members are no consumers, have an assignor of their own, or are too many."
    ),
    Rejection.FENCED_MEMBER_EPOCH: "The member has another epoch: it must give up its partitions and join again.",
    Rejection.FENCED_INSTANCE_ID: "Another member has taken over this instance id.",
    Rejection.UNRELEASED_INSTANCE_ID: "A member that has not left owns this instance id.",
    Rejection.MEMBERSHIP_REVOKED: "The member may not read the group any more.",
    Rejection.GROUP_MAX_SIZE_REACHED: "The group has as many members as it may have.",
    Rejection.UNSUPPORTED_ASSIGNOR: "This broker does not offer that assignor.",
    Rejection.INVALID_REGULAR_EXPRESSION: "The pattern is no regular expression of RE2's, or too large a one.",
}
"""Rejection -> the sentence that people read in their clients' logs."""


def _subscribed_topics(request: Any) -> Iterable[str]:
    return request.subscribed_topic_names or ()


def handle(broker: Broker, request: ConsumerGroupHeartbeatRequest, context: RequestContext, reply: Reply) -> None:
    """Pass it on, if it is whole."""
    fault = _fault(request, context.version)
    if fault is not None:
        reply(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=fault))
        return

    def done(answer: Answer) -> None:
        if not isinstance(answer, ConsumerHeartbeatDone):
            assert isinstance(answer, Rejection)
            code, message = context.error_code(answer), MESSAGES.get(answer)
            reply(ConsumerGroupHeartbeatResponse(error_code=code, error_message=message))
            return
        leaves = answer.member_epoch < JOINING_EPOCH
        response = ConsumerGroupHeartbeatResponse(
            member_id=answer.member_id,
            member_epoch=answer.member_epoch,
            heartbeat_interval_ms=0 if leaves else broker.configuration.group_consumer_heartbeat_interval_ms,
        )
        if answer.assignment is None:
            reply(response)
        else:
            _tell(broker, context, response, list(answer.assignment), reply)

    def command() -> ConsumerHeartbeat:
        return ConsumerHeartbeat(
            group_id=request.group_id,
            member_id=request.member_id or str(broker.new_uuid()),
            member_epoch=request.member_epoch,
            client_id=context.client_id,
            client_host=context.client_host,
            principal=context.principal.durable_name,
            instance_id=request.instance_id,
            rack_id=request.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            topics=None if request.subscribed_topic_names is None else frozenset(request.subscribed_topic_names),
            pattern=request.subscribed_topic_regex,
            assignor=request.server_assignor,
            owned=_owned(request.topic_partitions),
            hidden=_hidden(broker, request, context),
        )

    _ask(broker, context, command(), done)


def _tell(
    broker: Broker,
    context: RequestContext,
    response: ConsumerGroupHeartbeatResponse,
    assigned: list[tuple[bytes, int]],
    reply: Reply,
) -> None:
    """Tell a member what it is assigned, as far as it may see it."""
    found: dict[bytes, list[int]] = {}
    topics: list[TopicPartitions] = []
    response.assignment = Assignment(topic_partitions=topics)

    def gather(partitions: Iterable[tuple[bytes, int]]) -> None:
        for topic_id, index in partitions:
            found.setdefault(topic_id, []).append(index)

    def tell(topic_ids: Iterable[bytes]) -> None:
        topics.extend(
            TopicPartitions(topic_id=topic_id, partitions=sorted(found[topic_id]))
            for topic_id in topic_ids
            if _may_see(broker, context, topic_id)
        )

    by_pieces(context, assigned, gather, lambda: by_pieces(context, sorted(found), tell, lambda: reply(response)))


def _ask(broker: Broker, context: RequestContext, command: ConsumerHeartbeat, done: Callable[[Answer], None]) -> None:
    """Let the core decide. A long heartbeat is rehearsed on a thread, again where much has changed meanwhile.

    Those of one group are rehearsed and decided one after another.
    """
    scene, acl_changes = broker.engine.advice.scene_of(command), broker.engine.advice.acl_changes
    if scene is None:
        broker.ask(context, command, done)
        return

    def steps() -> Steps:
        line = context.shared.rehearsals
        turn = line.enter(command.group_id)
        try:
            yield turn
            yield from rehearsal()
        finally:
            line.leave(command.group_id, turn)

    def rehearsal() -> Steps:
        rehearsed = None
        for _ in range(MOST_REHEARSALS):
            present = broker.engine.advice.scene_of(command)
            if present is None:
                break
            outcome = yield partial(heartbeat, present.state, command, broker.engine.now_ms())
            if isinstance(outcome, Exception):
                raise outcome
            rehearsed = Rehearsed(present, outcome)
            if broker.engine.advice.look(present.is_as_it_was):
                break
        is_as_before = acl_changes == broker.engine.advice.acl_changes
        if is_as_before or allows(broker, context, Operation.READ, ResourceKind.GROUP, command.group_id):
            broker.ask(context, replace(command, rehearsed=rehearsed), done)
        else:  # it would be a member after all were looked at (`exacta.front.revocation`)
            done(Rejection.MEMBERSHIP_REVOKED)

    context.in_steps(steps())


def _hidden(broker: Broker, request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> frozenset[str]:
    """Return the topics that patterns must not match, since the client may not know of them."""
    if broker.authorizer.allows_all:
        return frozenset()
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    topics = broker.engine.advice.topics_to_match(request.group_id, subscribes=subscribes)
    return frozenset(topics).difference(describable_topics(broker, context, topics))


def _may_see(broker: Broker, context: RequestContext, topic_id: bytes) -> bool:
    """Return whether the member may know of a topic that it has been given, maybe by its pattern."""
    topic = broker.engine.advice.topic_name(topic_id)
    return topic is None or allows(broker, context, Operation.DESCRIBE, ResourceKind.TOPIC, topic)


def _fault(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """Return what is wrong with the request whatever the group, or None."""
    joins = request.member_epoch == JOINING_EPOCH
    if not request.member_id and (version >= CLIENTS_OWN_ID_SINCE or not joins):
        return "MemberId can't be empty."
    if not request.group_id:
        return "GroupId can't be empty."
    if request.instance_id == "":
        return "InstanceId can't be empty."
    if request.rack_id == "":
        return "RackId can't be empty."
    if joins:
        return _fault_in_joining(request)
    if request.member_epoch < LEFT_FOR_A_WHILE_EPOCH:
        return "MemberEpoch is invalid."
    if request.member_epoch == LEFT_FOR_A_WHILE_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    return None


def _fault_in_joining(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms < 0:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _owned(reported: list[TopicPartitions] | None) -> frozenset[tuple[bytes, int]] | None:
    if reported is None:
        return None
    return frozenset((bytes(topic.topic_id), index) for topic in reported for index in topic.partitions)


HANDLER = Handler(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    versions=(0, 1),
    needs=(
        Whole(Operation.READ, ResourceKind.GROUP, group_id),
        Whole(Operation.DESCRIBE, ResourceKind.TOPIC, _subscribed_topics),
        Inside(Operation.DESCRIBE, ResourceKind.TOPIC),
    ),
    at_follower=NOT_COORDINATOR,
    handle=handle,
)
