"""DescribeUserScramCredentials tells which users can log in by SCRAM, and nothing of their keys (KIP-554)."""

from collections import Counter

from exacta.core.queries.access import scram_mechanisms, scram_users
from exacta.core.state.state import State
from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.listing import describe_all
from exacta.kafka.needs import Whole
from exacta.kafka.parts import Parts, Repeats
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k50_describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(broker: Broker, request: DescribeUserScramCredentialsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer for each user that is named, once; for all users where none is named."""
    if not request.users:

        def done(results: list[DescribeUserScramCredentialsResult]) -> None:
            reply(DescribeUserScramCredentialsResponse(results=results))

        describe_all(broker, context, lambda state: sorted(scram_users(state)), _described, done)
        return
    named = Counter(user.name for user in request.users)

    def view(state: State, now_ms: int) -> DescribeUserScramCredentialsResponse:
        return DescribeUserScramCredentialsResponse(
            results=[_duplicate(user) if count > 1 else _result(state, user) for user, count in named.items()]
        )

    broker.read(context, view, reply)


def _described(state: State, now_ms: int, user: str) -> DescribeUserScramCredentialsResult | None:
    result = _result(state, user)
    return None if result.error_code else result  # it is gone since the listing began


def _result(state: State, user: str) -> DescribeUserScramCredentialsResult:
    known = scram_mechanisms(state, user)
    if not known:
        message = f"{user} has no credentials here"
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=message
        )
    infos = [CredentialInfo(mechanism=mechanism, iterations=iterations) for mechanism, iterations in known]
    return DescribeUserScramCredentialsResult(user=user, credential_infos=infos)


def _duplicate(user: str) -> DescribeUserScramCredentialsResult:
    message = f"the request names {user} more than once"
    return DescribeUserScramCredentialsResult(user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=message)


HANDLER = Handler(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    needs=(Whole(Operation.DESCRIBE, ResourceKind.CLUSTER),),
    handle=handle,
    parts=(Parts("users", "results", repeats=Repeats.REFUSED),),
)
