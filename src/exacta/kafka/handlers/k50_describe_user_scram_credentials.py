"""DescribeUserScramCredentials tells which users can log in by SCRAM, and nothing of their keys (KIP-554)."""

from collections import Counter
from functools import partial

from exacta.core.queries.access import Mechanisms, scram_mechanisms, scram_mechanisms_of, scram_users
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

    def done(results: list[DescribeUserScramCredentialsResult]) -> None:
        reply(DescribeUserScramCredentialsResponse(results=results))

    if not request.users:
        describe_all(broker, context, broker.engine.view(scram_users), scram_mechanisms, _result, done)
        return
    named = Counter(user.name for user in request.users)

    def found(known: dict[str, Mechanisms | None]) -> None:
        done([_duplicate(user) if count > 1 else _result(user, known[user]) for user, count in named.items()])

    broker.read(context, partial(scram_mechanisms_of, users=tuple(named)), found)


def _result(user: str, known: Mechanisms | None) -> DescribeUserScramCredentialsResult:
    if known is None:
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
