"""JoinGroup (classic protocol) is answered when every member has joined, or time is up."""

from exacta.core.commands import JoinGroup
from exacta.core.groups.consumer_words import subscribed_topics
from exacta.core.rejections import Rejection
from exacta.core.replies import Joined, MemberIdRequired
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, group_id
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

MEMBER_ID_REQUIRED_SINCE = 4  # KIP-394
NULL_PROTOCOL_SINCE = 7  # KIP-559
SKIP_ASSIGNMENT_SINCE = 9  # KIP-814

_NAMED_BY = 250
"""A member id begins with this many characters of the instance or client id; a Kafka string must hold all of it."""


def handle(broker: Broker, request: JoinGroupRequest, context: RequestContext, reply: Reply) -> None:
    """Let a member join or rejoin."""

    def refuse(code: ErrorCode, member_id: str) -> None:
        no_protocol = None if context.version >= NULL_PROTOCOL_SINCE else ""
        reply(JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=no_protocol))

    def done(answer: Answer) -> None:
        if isinstance(answer, Joined):
            reply(
                JoinGroupResponse(
                    generation_id=answer.generation,
                    protocol_type=answer.protocol_type,
                    protocol_name=answer.protocol,
                    leader=answer.leader,
                    member_id=answer.member_id,
                    members=[
                        JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
                        for member_id, instance_id, metadata in answer.members
                    ],
                    skip_assignment=answer.skip_assignment,
                )
            )
        elif isinstance(answer, MemberIdRequired):
            refuse(ErrorCode.MEMBER_ID_REQUIRED, answer.member_id)
        else:
            assert isinstance(answer, Rejection)
            member_id = "" if answer is Rejection.GROUP_MAX_SIZE_REACHED else request.member_id
            refuse(context.error_code(answer), member_id)

    instance_id = request.group_instance_id
    named_by = context.client_id if instance_id is None else instance_id
    # Version 0 has no time-out for the rebalance: the session's stands for both.
    # Version 0 has no time for a rebalance; later, a negative one leaves nobody any time, as in Kafka.
    rebalance_timeout_ms = request.session_timeout_ms if context.version == 0 else max(request.rebalance_timeout_ms, 0)
    broker.ask(
        context,
        JoinGroup(
            ticket=broker.new_ticket(),
            group_id=request.group_id,
            member_id=request.member_id,
            new_member_id=f"{named_by[:_NAMED_BY]}-{broker.new_uuid()}",
            client_id=context.client_id,
            client_host=context.client_host,
            principal=context.principal.durable_name,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
            subscription=subscribed_topics(request.protocol_type, [each.metadata for each in request.protocols]),
            knows_member_id_required=context.version >= MEMBER_ID_REQUIRED_SINCE,
            instance_id=instance_id,
            knows_skip_assignment=context.version >= SKIP_ASSIGNMENT_SINCE,
        ),
        done,
    )


HANDLER = Handler(
    ApiKey.JOIN_GROUP,
    versions=(0, 9),
    needs=(Whole(Operation.READ, ResourceKind.GROUP, group_id),),
    at_follower=NOT_COORDINATOR,
    handle=handle,
)
