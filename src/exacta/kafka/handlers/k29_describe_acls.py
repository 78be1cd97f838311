"""DescribeAcls: there are no access rules here, as on an Apache Kafka without an authorizer."""

from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse

KEY = ApiKey.DESCRIBE_ACLS
MIN_VERSION = 1
MAX_VERSION = 3
PLAIN_ERROR = DescribeAclsResponse

NO_AUTHORIZER = "there are no access rules here (no authorizer)"


def handle(broker: BrokerContext, request: DescribeAclsRequest, context: RequestContext, reply: Reply) -> None:
    """Say that there is nothing to describe."""
    reply(DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER))
