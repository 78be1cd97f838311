"""A broker of Exacta at whose doors for Pulsar clients these log in: its users, its rules, and its tokens."""

import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jwt
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

import exacta
from exacta.config.security import STANDARD_AUTHORIZER

SECONDS = 20
SECRET = bytes(range(32))
USER, PASSWORD = "alice", "a secret"
_PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
OPTIONS: dict[str, Any] = {
    "authenticationEnabled": True,
    "authenticationProviders": f"{_PROVIDER}Token,{_PROVIDER}Basic,{_PROVIDER}Tls",
    "tokenSecretKey": "data:;base64," + base64.b64encode(SECRET).decode(),
    "ssl_client_auth": "requested",
    "authorizer_class_name": STANDARD_AUTHORIZER,
    "super_users": "User:ANONYMOUS",
    "connection_failed_authentication_delay_ms": 1,
}


def token(user: str = USER, seconds: float = 600.0) -> str:
    return jwt.encode({"sub": user, "exp": time.time() + seconds}, SECRET, "HS256")


@contextmanager
def broker_with_logins() -> Iterator[exacta.Broker]:
    """Run it: alice may do all with topics whose names begin with `alices-`, and her subscriptions are her own."""
    with exacta.Broker(pulsar=True, tls=True, **OPTIONS) as broker:
        secured = {"security.protocol": "SSL", "ssl.ca.location": broker.tls_ca}
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **secured})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        upsertion = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        for done in admin.alter_user_scram_credentials([upsertion]).values():
            done.result(SECONDS)
        rules = [
            AclBinding(
                kind,
                name,
                ResourcePatternType.PREFIXED,
                f"User:{USER}",
                "*",
                AclOperation.ALL,
                AclPermissionType.ALLOW,
            )
            for kind, name in ((ResourceType.TOPIC, "alices-"), (ResourceType.GROUP, "alices-"))
        ]
        for done in admin.create_acls(rules).values():
            done.result(SECONDS)
        yield broker
