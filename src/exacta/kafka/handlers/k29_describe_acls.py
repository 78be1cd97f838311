"""DescribeAcls lists the access rules that a filter matches (KIP-140, KIP-290): those of one moment, told in steps."""

from functools import partial

from exacta.core.queries.access import acls_matching
from exacta.core.values.acl import Pattern, ResourceKind
from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.kafka.acl_words import KINDS, NO_AUTHORIZER, PATTERNS, NotPossible, filter_of, numbers_of
from exacta.kafka.at_follower import CATCHES_UP
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.listing import MANY
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k29_describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def handle(broker: Broker, request: DescribeAclsRequest, context: RequestContext, reply: Reply) -> None:
    """List the rules, those for one pattern together."""
    if broker.authorizer.allows_all:
        reply(DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER))
        return
    try:
        wanted = filter_of(request)
    except NotPossible as wrong:
        reply(DescribeAclsResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=str(wrong)))
        return
    matching = broker.engine.view(partial(acls_matching, wanted=wanted))

    def steps() -> Steps:
        resources: dict[tuple[ResourceKind, Pattern, str], DescribeAclsResource] = {}
        for acl in matching:
            pattern = (acl.kind, acl.pattern, acl.name)
            if pattern not in resources:
                resources[pattern] = DescribeAclsResource(
                    resource_type=KINDS[acl.kind], resource_name=acl.name, pattern_type=PATTERNS[acl.pattern]
                )
            resources[pattern].acls.append(AclDescription(**numbers_of(acl)))
            yield None
        broker.when_durable(context, lambda: reply(DescribeAclsResponse(resources=list(resources.values()))))

    context.is_long = len(matching) > MANY
    context.in_steps(steps())


HANDLER = Handler(
    ApiKey.DESCRIBE_ACLS,
    versions=(1, 3),
    needs=(Whole(Operation.DESCRIBE, ResourceKind.CLUSTER),),
    at_follower=CATCHES_UP,
    handle=handle,
)
