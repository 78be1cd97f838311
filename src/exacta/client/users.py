"""Make, list and delete the users that log in by SCRAM, as an administrator does (KIP-554).

The password stays here: the cluster is sent what it salts to.
"""

import secrets
from collections.abc import Iterable

from exacta.client.routing import Anyone, Client, Controller
from exacta.client.topic_administration import ask
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k50_describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from exacta.protocol.kafka.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from exacta.protocol.kafka.scram_numbers import MECHANISMS
from exacta.protocol.sasl.scram import ALGORITHMS, USUAL_ITERATIONS, USUAL_SALT_BYTES, salted_password


def list_users(client: Client) -> dict[str, list[tuple[str, int]]]:
    """Return the users by name: the mechanisms by which each can log in, and their iterations."""
    request = DescribeUserScramCredentialsRequest(users=None)
    reply = ask(client, Anyone(), request, what="listing users", entries=lambda reply: [reply])
    words = {number: word for word, number in MECHANISMS.items()}
    return {
        each.user: sorted(
            (words.get(info.mechanism, str(info.mechanism)), info.iterations) for info in each.credential_infos
        )
        for each in sorted(reply.results, key=lambda result: str(result.user))
        if each.error_code == ErrorCode.NONE
    }


def set_password(client: Client, user: str, password: str, *mechanisms: str) -> None:
    """Let a user log in by this password from now on, by each of the mechanisms. Raises `KafkaError`.

    Each mechanism is a request of its own: Kafka alters no user twice in one (DUPLICATE_RESOURCE, KIP-554).
    """
    for upsertion in [_upsertion(user, password, each) for each in mechanisms]:  # the salting takes its time before
        _alter(client, AlterUserScramCredentialsRequest(upsertions=[upsertion]), f"setting the password of '{user}'")


def _upsertion(user: str, password: str, mechanism: str) -> ScramCredentialUpsertion:
    salt = secrets.token_bytes(USUAL_SALT_BYTES)
    salted = salted_password(ALGORITHMS[mechanism], password, salt, USUAL_ITERATIONS)
    return ScramCredentialUpsertion(
        name=user, mechanism=MECHANISMS[mechanism], iterations=USUAL_ITERATIONS, salt=salt, salted_password=salted
    )


def remove_user(client: Client, user: str, mechanisms: Iterable[str]) -> None:
    """Delete what a user logs in by, in a request for each mechanism. Raises `KafkaError`."""
    for each in mechanisms:
        deletion = ScramCredentialDeletion(name=user, mechanism=MECHANISMS[each])
        _alter(client, AlterUserScramCredentialsRequest(deletions=[deletion]), f"deleting user '{user}'")


def _alter(client: Client, request: AlterUserScramCredentialsRequest, what: str) -> None:
    ask(client, Controller(), request, what=what, entries=lambda reply: reply.results)
