"""SyncGroup: the leader brings the assignments, and each member gets its own."""

from exacta.core.commands import SyncGroup
from exacta.core.replies import Synced
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, group_id
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k14_sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_SINCE = 5  # KIP-559


def handle(broker: Broker, request: SyncGroupRequest, context: RequestContext, reply: Reply) -> None:
    """Answer when the leader has spoken."""
    if context.version >= PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        reply(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return

    def done(answer: Answer) -> None:
        if isinstance(answer, Synced):
            reply(
                SyncGroupResponse(
                    protocol_type=answer.protocol_type, protocol_name=answer.protocol, assignment=answer.assignment
                )
            )
        else:
            reply(SyncGroupResponse(error_code=context.error_code(answer)))

    broker.ask(
        context,
        SyncGroup(
            ticket=broker.new_ticket(),
            group_id=request.group_id,
            member_id=request.member_id,
            generation=request.generation_id,
            assignments=tuple((each.member_id, each.assignment) for each in request.assignments),
            instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocol=request.protocol_name,
        ),
        done,
    )


HANDLER = Handler(
    ApiKey.SYNC_GROUP,
    versions=(0, 5),
    needs=(Whole(Operation.READ, ResourceKind.GROUP, group_id),),
    at_follower=NOT_COORDINATOR,
    handle=handle,
)
