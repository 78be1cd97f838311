"""All attackers by name, and how many strings of bytes a whole sweep gives to each."""

from collections.abc import Callable
from typing import NamedTuple

from tests.fuzz import http_target, kafka_target, pulsar_target, tls_target


class Target(NamedTuple):
    """One attacker, who does what bytes say, and raises AssertionError where the broker does what it should not."""

    attack: Callable[[bytes], None]
    inputs: int


TARGETS = {
    "tls-before-login": Target(tls_target.before_login, 300),
    "kafka-before-login": Target(kafka_target.before_login, 1_500),
    "kafka-without-rights": Target(kafka_target.without_rights, 1_500),
    "kafka-with-rights": Target(kafka_target.with_rights, 1_500),
    "pulsar-before-login": Target(pulsar_target.before_login, 600),
    "pulsar-without-rights": Target(pulsar_target.without_rights, 600),
    "pulsar-with-rights": Target(pulsar_target.with_rights, 600),
    "http-before-login": Target(http_target.before_login, 300),
    "http-without-rights": Target(http_target.without_rights, 300),
    "http-with-rights": Target(http_target.with_rights, 300),
}
