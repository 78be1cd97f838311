"""DescribeAcls: there are no access rules here, as on an Apache Kafka without an authorizer."""

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse

KEY = ApiKey.DESCRIBE_ACLS
MIN_VERSION = 1
MAX_VERSION = 3

NO_AUTHORIZER = "there are no access rules here (no authorizer)"

NEEDS = (Whole(Operation.DESCRIBE, ResourceKind.CLUSTER),)


def handle(broker: Broker, request: DescribeAclsRequest, context: RequestContext, reply: Reply) -> None:
    """Say that there is nothing to describe."""
    reply(DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER))


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    plain_error=DescribeAclsResponse,
)
