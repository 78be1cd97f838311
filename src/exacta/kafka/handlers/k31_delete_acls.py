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

KEY = ApiKey.DELETE_ACLS
MIN_VERSION = 1
MAX_VERSION = 3

NEEDS = (Whole(Operation.ALTER, ResourceKind.CLUSTER),)


def handle(broker: Broker, request: DeleteAclsRequest, context: RequestContext, reply: Reply) -> None:
    """Refuse each filter."""
    refused = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    reply(DeleteAclsResponse(filter_results=[refused] * len(request.filters)))


def refused(request: DeleteAclsRequest, code: ErrorCode, version: int) -> DeleteAclsResponse:
    """Refuse every filter of a request."""
    return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(error_code=code) for _ in request.filters])


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    refused=refused,
)
