"""DescribeAcls: there are no access rules here, as on an Apache Kafka without an authorizer."""

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse

NO_AUTHORIZER = "there are no access rules here (no authorizer)"


def handle(broker: Broker, request: DescribeAclsRequest, context: RequestContext, reply: Reply) -> None:
    """Say that there is nothing to describe."""
    reply(DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER))


HANDLER = Handler(
    ApiKey.DESCRIBE_ACLS,
    versions=(1, 3),
    needs=(Whole(Operation.DESCRIBE, ResourceKind.CLUSTER),),
    handle=handle,
)
