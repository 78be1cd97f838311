"""DescribeUserScramCredentials tells which users can log in by SCRAM, and nothing of their keys (KIP-554)."""

from collections import Counter
from functools import partial

from exacta.core.queries.access import Mechanisms, scram_mechanisms, scram_users
from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.kafka.at_follower import CATCHES_UP
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.listing import MANY
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
    named = Counter(user.name for user in request.users or ())
    users = list(named) or broker.engine.view(scram_users)

    def steps() -> Steps:
        results = []
        for user in users:
            known = broker.engine.view(partial(scram_mechanisms, user=user))
            if named[user] > 1:
                results.append(_duplicate(user))
            elif known or named:  # who is not named, and is gone since the listing began, is left out
                results.append(_result(user, known))
            yield None
        broker.when_durable(context, lambda: reply(DescribeUserScramCredentialsResponse(results=results)))

    context.is_long = len(users) > MANY
    context.in_steps(steps())


def _result(user: str, known: Mechanisms) -> DescribeUserScramCredentialsResult:
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
    at_follower=CATCHES_UP,
    handle=handle,
    parts=(Parts("users", "results", repeats=Repeats.REFUSED),),
)
