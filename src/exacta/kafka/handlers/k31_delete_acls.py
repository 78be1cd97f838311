"""DeleteAcls: there are no access rules here, as on an Apache Kafka without an authorizer."""

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.handlers.k29_describe_acls import NO_AUTHORIZER
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k31_delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def handle(broker: Broker, request: DeleteAclsRequest, context: RequestContext, reply: Reply) -> None:
    """Refuse each filter."""
    refused = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    reply(DeleteAclsResponse(filter_results=[refused] * len(request.filters)))


HANDLER = Handler(
    ApiKey.DELETE_ACLS,
    versions=(1, 3),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER),),
    handle=handle,
)
