"""DeleteGroups: groups without members, with their offsets (KIP-229)."""

from exacta.core.commands import DeleteGroup
from exacta.engine.engine import Answer
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.kafka.messages.k42_delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

KEY = ApiKey.DELETE_GROUPS
MIN_VERSION = 0
MAX_VERSION = 3


def handle(broker: BrokerContext, request: DeleteGroupsRequest, context: RequestContext, reply: Reply) -> None:
    """Delete each group for itself."""

    def done(answers: list[Answer]) -> None:
        reply(
            DeleteGroupsResponse(
                results=[
                    DeletableGroupResult(group_id=group_id, error_code=error_code(answer, KEY, context.version))
                    for group_id, answer in zip(request.groups_names, answers, strict=True)
                ]
            )
        )

    broker.submit(context, [DeleteGroup(group_id=group_id) for group_id in request.groups_names], done)
