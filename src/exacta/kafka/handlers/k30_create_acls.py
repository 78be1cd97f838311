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


def handle(broker: Broker, request: CreateAclsRequest, context: RequestContext, reply: Reply) -> None:
    """Refuse each rule."""
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    reply(CreateAclsResponse(results=[refused] * len(request.creations)))


HANDLER = Handler(
    ApiKey.CREATE_ACLS,
    versions=(1, 3),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER),),
    handle=handle,
)
