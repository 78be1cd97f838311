"""DeleteAcls deletes the access rules that filters match (KIP-140, KIP-290)."""

from exacta.core.commands import DeleteAcls
from exacta.core.replies import AclsDeletedReply
from exacta.core.values.acl import Acl, AclFilter, ResourceKind
from exacta.front.broker import Broker
from exacta.kafka.acl_words import KINDS, NO_AUTHORIZER, PATTERNS, NotPossible, filter_of, numbers_of
from exacta.kafka.at_follower import NOT_CONTROLLER_ELSEWHERE
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.kafka.parts import Parts
from exacta.ports.authorizer import Operation
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k31_delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from exacta.security import audit

MOST_FILTERS = 5
"""The filters of one step: one without a name looks at every rule, which takes some milliseconds for 100,000."""
MOST_FILTERS_IN_ALL = 1_000


def handle(broker: Broker, request: DeleteAclsRequest, context: RequestContext, reply: Reply) -> None:
    """Delete what the filters match, in one step."""
    if broker.authorizer.allows_all:
        refused = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        reply(DeleteAclsResponse(filter_results=[refused] * len(request.filters)))
        return
    wanted = [_filter_or_refusal(each) for each in request.filters]
    command = DeleteAcls(filters=tuple(each for each in wanted if isinstance(each, AclFilter)))

    def done(answer: Answer) -> None:
        code = context.error_code(answer)
        deleted = iter(answer.deleted if isinstance(answer, AclsDeletedReply) else [()] * len(command.filters))
        results = [
            DeleteAclsFilterResult(error_code=code, matching_acls=[_told(acl) for acl in next(deleted)])
            if isinstance(each, AclFilter)
            else each
            for each in wanted
        ]
        reply(DeleteAclsResponse(filter_results=results))

    audit.asked(context.principal, context.connection.peer, "access rules")
    broker.ask(context, command, done)


def _filter_or_refusal(wanted: DeleteAclsFilter) -> AclFilter | DeleteAclsFilterResult:
    try:
        return filter_of(wanted)
    except NotPossible as wrong:
        return DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=str(wrong))


def _told(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=KINDS[acl.kind],
        resource_name=acl.name,
        pattern_type=PATTERNS[acl.pattern],
        **numbers_of(acl),
    )


HANDLER = Handler(
    ApiKey.DELETE_ACLS,
    versions=(1, 3),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER),),
    at_follower=NOT_CONTROLLER_ELSEWHERE,
    handle=handle,
    parts=(
        Parts("filters", "filter_results", "resource_name_filter", most=MOST_FILTERS, most_in_all=MOST_FILTERS_IN_ALL),
    ),
)
