"""DescribeUserScramCredentials: there are no logins here, hence no user has credentials (KIP-554)."""

from collections import Counter

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.kafka.parts import Parts, Repeats
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k50_describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(broker: Broker, request: DescribeUserScramCredentialsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer for each user that is named, once."""
    named = Counter(user.name for user in request.users or ())
    reply(DescribeUserScramCredentialsResponse(results=[_result(*each) for each in named.items()]))


def _result(user: str, count: int) -> DescribeUserScramCredentialsResult:
    if count > 1:
        code, message = ErrorCode.DUPLICATE_RESOURCE, f"the request names {user} more than once"
    else:
        code, message = ErrorCode.RESOURCE_NOT_FOUND, f"{user} has no credentials here"
    return DescribeUserScramCredentialsResult(user=user, error_code=code, error_message=message)


HANDLER = Handler(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    needs=(Whole(Operation.DESCRIBE, ResourceKind.CLUSTER),),
    handle=handle,
    parts=(Parts("users", "results", repeats=Repeats.REFUSED),),
)
