"""DeleteGroups deletes groups without members, with their offsets (KIP-229)."""

from exacta.core.commands import DeleteGroup
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.coded_answers import coded
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each
from exacta.kafka.parts import divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k42_delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

NEEDS = (Each(Operation.DELETE, ResourceKind.GROUP, "groups_names", "results", name=""),)


def handle(broker: Broker, request: DeleteGroupsRequest, context: RequestContext, reply: Reply) -> None:
    """Delete each group for itself."""

    def done(answers: list[Answer]) -> None:
        codes = map(context.error_code, answers)
        reply(coded(DeleteGroupsResponse, NEEDS[0], request, codes, context.version))

    broker.submit(context, [DeleteGroup(group_id=group_id) for group_id in request.groups_names], done)


HANDLER = Handler(
    ApiKey.DELETE_GROUPS,
    versions=(0, 3),
    needs=NEEDS,
    at_follower=NOT_COORDINATOR,
    handle=handle,
    parts=(divided_by(NEEDS[0], most=100),),
)
