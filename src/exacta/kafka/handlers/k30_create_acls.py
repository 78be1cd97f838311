"""CreateAcls: access rules cannot be had here, as on an Apache Kafka without an authorizer."""

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.handlers.k29_describe_acls import NO_AUTHORIZER
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k30_create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

KEY = ApiKey.CREATE_ACLS
MIN_VERSION = 1
MAX_VERSION = 3

NEEDS = (Whole(Operation.ALTER, ResourceKind.CLUSTER),)


def handle(broker: Broker, request: CreateAclsRequest, context: RequestContext, reply: Reply) -> None:
    """Refuse each rule."""
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    reply(CreateAclsResponse(results=[refused] * len(request.creations)))


def refused(request: CreateAclsRequest, code: ErrorCode, version: int) -> CreateAclsResponse:
    """Refuse every rule of a request."""
    return CreateAclsResponse(results=[AclCreationResult(error_code=code) for _ in request.creations])


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    refused=refused,
)
