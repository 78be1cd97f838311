"""Logins at several brokers: one token makes the first user wherever a client begins, and the user is known to all."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from exacta.config.security import STANDARD_AUTHORIZER
from tests.server.cluster.brokers import Brokers

OPTIONS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:alice",
    "connection.failed.authentication.delay.ms": 1,
}
SECONDS = 20


def admin(address: str, user: str, password: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": password,
        }
    )


def test_the_first_user_is_made_by_way_of_a_follower_and_logs_in_at_every_broker(tmp_path: Path) -> None:
    with Brokers(tmp_path, OPTIONS, login=True) as brokers:
        brokers.start(1)
        leader = brokers.leader()
        brokers.start(2)
        [follower] = brokers.followers()
        tokens = {(tmp_path / str(each) / "first-user.token").read_text().strip() for each in (1, 2)}
        assert len(tokens) == 1
        [token] = tokens
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        wanted = UserScramCredentialUpsertion("alice", info, b"secret")
        first = admin(brokers.address(follower), "first-user", token)
        first.alter_user_scram_credentials([wanted])["alice"].result(SECONDS)
        brokers.until_all_have_followed()
        for each in (leader, follower):
            found = admin(brokers.address(each), "alice", "secret").list_topics(timeout=SECONDS)
            assert {*found.brokers} == {1, 2}
        with pytest.raises(KafkaException):
            admin(brokers.address(follower), "first-user", token).list_topics(timeout=2)
