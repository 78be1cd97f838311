"""The token by which the first user is made: which start has one, and the file in which it stands.

A start has one where access rules are on, Kafka clients log in by name and password, there is no user, and no other
principal that may make users has a way in. The file of an earlier start holds no more, and is removed or replaced.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from exacta.config.configuration import Configuration
from exacta.config.security import all_super_users
from exacta.core.state.state import State
from exacta.core.values.acl import Operation, ResourceKind
from exacta.front.doors import Door, TransportSecurity
from exacta.ports.authorizer import ANONYMOUS
from exacta.ports.log import Advice
from exacta.security.first_user import FirstUserToken
from exacta.security.logins import OAUTHBEARER
from exacta.server.advice import with_advice
from exacta.server.errors import ServerError
from exacta.server.identity import TOKEN_FILE, keep
from exacta.server.logins import mechanisms_of

logger = logging.getLogger("exacta.server")


def needs_first_user(configuration: Configuration, state: State, doors: Sequence[Door]) -> bool:
    """Return whether nobody who may make a user could come in, and a first user could."""
    kafkas = [each for each in doors if each.front == "kafka"]
    if state.scram_keys or not configuration.authorizer_class_name:
        return False
    offered = {each for door in kafkas if door.login for each in mechanisms_of(configuration, [door])}
    return bool(offered - {OAUTHBEARER}) and not _has_administrator(configuration, state, kafkas, offered)


def _has_administrator(configuration: Configuration, state: State, doors: Sequence[Door], offered: set[str]) -> bool:
    """Return whether a principal that may make users has a way in without a password of the log."""
    administrators = all_super_users(configuration) | {
        str(each.principal)
        for each in state.acls
        if each.allows and each.kind is ResourceKind.CLUSTER and each.operation in (Operation.ALL, Operation.ALTER)
    }
    if not administrators:
        return False
    if OAUTHBEARER in offered:
        return True
    for door in doors:
        options = replace(configuration, **door.options)  # type: ignore[arg-type]
        if door.security is TransportSecurity.TLS and options.ssl_client_auth != "none":
            return True
        if not door.login and administrators & {str(ANONYMOUS), "User:*"}:
            return True
    return False


def first_user_token(
    data: Path,
    advice: Advice,
    configuration: Configuration,
    state: State,
    doors: Sequence[Door],
    text: str | None = None,
) -> FirstUserToken | None:
    """Write a new token, or remove the one of an earlier start; None: there is none. Raises ServerError.

    `text` is the token where all brokers of a cluster have the same one.
    """
    file = data / TOKEN_FILE
    try:
        if not needs_first_user(configuration, state, doors):
            file.unlink(missing_ok=True)
            return None
        token = FirstUserToken(file.absolute(), lambda: advice.has_users, text)
        keep(file, f"{token.text}\n".encode())
    except OSError as error:
        raise ServerError(with_advice(f"cannot use the data directory {data}: {error}")) from error
    logger.warning("there is no user, and who has the token in %s may make the first one", token.file)
    return token
