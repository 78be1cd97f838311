"""CreateAcls makes access rules (KIP-140, KIP-290), each by itself: one that cannot be hinders no other."""

from exacta.core.commands import CreateAcls
from exacta.core.values.acl import Acl, ResourceKind
from exacta.front.broker import Broker
from exacta.kafka.acl_words import NO_AUTHORIZER, NotPossible, acl_of
from exacta.kafka.at_follower import NOT_CONTROLLER_ELSEWHERE
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.kafka.parts import Parts
from exacta.ports.authorizer import Operation
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k30_create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from exacta.security import audit


def handle(broker: Broker, request: CreateAclsRequest, context: RequestContext, reply: Reply) -> None:
    """Make the rules that there can be."""
    if broker.authorizer.allows_all:
        refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        reply(CreateAclsResponse(results=[refused] * len(request.creations)))
        return
    wanted = [_acl_or_refusal(each) for each in request.creations]
    command = CreateAcls(acls=tuple(each for each in wanted if isinstance(each, Acl)))

    def done(answer: Answer) -> None:
        made = AclCreationResult(error_code=context.error_code(answer))
        reply(CreateAclsResponse(results=[made if isinstance(each, Acl) else each for each in wanted]))

    audit.asked(context.principal, context.connection.peer, "access rules")
    broker.ask(context, command, done)


def _acl_or_refusal(wanted: AclCreation) -> Acl | AclCreationResult:
    try:
        return acl_of(wanted)
    except NotPossible as wrong:
        return AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=str(wrong))


HANDLER = Handler(
    ApiKey.CREATE_ACLS,
    versions=(1, 3),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER),),
    at_follower=NOT_CONTROLLER_ELSEWHERE,
    handle=handle,
    parts=(Parts("creations", "results", "resource_name"),),
)
