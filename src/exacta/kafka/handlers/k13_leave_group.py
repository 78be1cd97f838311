"""LeaveGroup takes members out, so that the others need not wait for their sessions to end.

Version 3 names several (KIP-345).
"""

from exacta.core.commands import LeaveGroup, MemberToRemove
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, MembersLeft
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, group_id
from exacta.kafka.parts import Parts
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

SEVERAL_SINCE = 3


def handle(broker: Broker, request: LeaveGroupRequest, context: RequestContext, reply: Reply) -> None:
    """Let the members leave; reasons (KIP-800) are for logs, and no such log is kept here."""
    several = context.version >= SEVERAL_SINCE
    if several:
        members = tuple(
            MemberToRemove(member_id=member.member_id, instance_id=member.group_instance_id)
            for member in request.members
        )
    else:
        members = (MemberToRemove(member_id=request.member_id),)

    def code(rejection: Rejection | None) -> ErrorCode:
        return context.error_code(DONE if rejection is None else rejection)

    def done(answer: Answer) -> None:
        if not isinstance(answer, MembersLeft):
            reply(LeaveGroupResponse(error_code=context.error_code(answer)))
        elif not several:
            reply(LeaveGroupResponse(error_code=code(answer.rejections[0])))
        else:
            reply(
                LeaveGroupResponse(
                    members=[
                        MemberResponse(
                            member_id=member.member_id,
                            group_instance_id=member.group_instance_id,
                            error_code=code(rejection),
                        )
                        for member, rejection in zip(request.members, answer.rejections, strict=True)
                    ]
                )
            )

    broker.ask(context, LeaveGroup(group_id=request.group_id, members=members), done)


HANDLER = Handler(
    ApiKey.LEAVE_GROUP,
    versions=(0, 5),
    needs=(Whole(Operation.READ, ResourceKind.GROUP, group_id),),
    at_follower=NOT_COORDINATOR,
    handle=handle,
    parts=(Parts("members", "members", name="member_id"),),
)
