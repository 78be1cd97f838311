"""AlterUserScramCredentials sets and deletes the keys by which users log in by SCRAM (KIP-554).

The request has the salted password. What a server needs is derived from it here, and the rest is forgotten. Without an
authorizer everybody could set everybody's keys, so nobody can; Apache Kafka lets them.
"""

from collections.abc import Iterable

from exacta.core.commands import AlterScramKeys, MakeFirstUser
from exacta.core.rejections import Rejection
from exacta.core.replies import ScramKeysAltered
from exacta.core.values.scram import ScramAlteration, ScramMechanism
from exacta.front.broker import Broker
from exacta.kafka.acl_words import NO_AUTHORIZER
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.kafka.parts import Parts
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialUpsertion,
)
from exacta.protocol.kafka.scram_numbers import MECHANISMS
from exacta.security import audit
from exacta.security.first_user import FIRST_USER
from exacta.security.scram_keys import kept_key

MOST_AT_ONCE = 1_000
"""The most deletions, and the most upsertions, of one request: all of them are decided in one step."""

_MECHANISMS = {MECHANISMS[each.sasl_name]: each for each in ScramMechanism}
_MESSAGES = {
    Rejection.UNACCEPTABLE_CREDENTIAL: "a user must have a name that fits one line and is neither ANONYMOUS nor "
    f"{FIRST_USER.name}, and a key 4,096 to 16,384 iterations, a salt and a password",
    Rejection.UNSUPPORTED_MECHANISM: "the SCRAM mechanism is not known",
    Rejection.CREDENTIAL_NOT_FOUND: "the user has no such key",
    Rejection.NOT_THE_FIRST_USER: "this token makes one user, while there is none",
    Rejection.DUPLICATE_USER: "a user cannot be altered twice in one request",
}


def handle(broker: Broker, request: AlterUserScramCredentialsRequest, context: RequestContext, reply: Reply) -> None:
    """Alter the keys of each user for itself."""
    if broker.authorizer.allows_all:
        reply(refused(request, ErrorCode.SECURITY_DISABLED, context.version, NO_AUTHORIZER))
        return
    deletions = [ScramAlteration(each.name, _MECHANISMS.get(each.mechanism)) for each in request.deletions]
    alterations = (*deletions, *map(_upsertion, request.upsertions))
    makes_first = context.principal is FIRST_USER
    command = (MakeFirstUser if makes_first else AlterScramKeys)(alterations=alterations)

    def done(answer: Answer) -> None:
        if not isinstance(answer, ScramKeysAltered):
            message = _MESSAGES.get(answer) if isinstance(answer, Rejection) else None
            reply(refused(request, context.error_code(answer), context.version, message))
            return
        if makes_first and broker.logins is not None and broker.logins.first_user is not None:
            broker.logins.first_user.use()
        results = [_result(*each, context) for each in answer.rejections]
        reply(AlterUserScramCredentialsResponse(results=results))

    audit.asked(context.principal, context.connection.peer, "users")
    broker.ask(context, command, done)


def _upsertion(wanted: ScramCredentialUpsertion) -> ScramAlteration:
    mechanism = _MECHANISMS.get(wanted.mechanism)
    if mechanism is None:
        return ScramAlteration(wanted.name, None)
    # No client can log in without a salt or a password, or by the name of the token: the core refuses no iterations.
    can_log_in = wanted.salt and wanted.salted_password and wanted.name != FIRST_USER.name
    iterations = wanted.iterations if can_log_in else 0
    return ScramAlteration(wanted.name, mechanism, kept_key(mechanism, wanted.salt, iterations, wanted.salted_password))


def _result(user: str, rejection: Rejection | None, context: RequestContext) -> AlterUserScramCredentialsResult:
    if rejection is None:
        return AlterUserScramCredentialsResult(user=user)
    code = context.error_code(rejection)
    return AlterUserScramCredentialsResult(user=user, error_code=code, error_message=_MESSAGES.get(rejection))


def refused(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, version: int, message: str | None = None
) -> AlterUserScramCredentialsResponse:
    """Refuse each user of a request, once."""
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
            for user in _users(request)
        ]
    )


def _users(request: AlterUserScramCredentialsRequest) -> Iterable[str]:
    return dict.fromkeys(each.name for elements in (request.deletions, request.upsertions) for each in elements)


HANDLER = Handler(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER),),
    at_follower=NOT_CONTROLLER,
    handle=handle,
    refused=refused,
    parts=tuple(
        Parts(elements, "results", most=MOST_AT_ONCE, most_in_all=MOST_AT_ONCE)
        for elements in ("upsertions", "deletions")
    ),
)
