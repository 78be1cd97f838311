"""Kafka's keys: each has a class and a reason, and those that are served by their own names are options."""

from pathlib import Path

import pytest

from exacta.config.kafka_keys import KAFKA_KEYS, SAME, KeyClass, kafka_key, listed
from exacta.config.options import options

KAFKAS_OWN = frozenset((Path(__file__).parent / "kafka-4.4-broker-keys.txt").read_text().split())
"""The keys that `KafkaConfig.configDef()` of Apache Kafka 4.4 has."""

OF_THE_AUTHORIZER = {"super.users", "allow.everyone.if.no.acl.found"}
"""The keys that `StandardAuthorizer` reads beside them."""

OF_TRANSACTIONS = {
    "transaction.state.log.num.partitions": KeyClass.NO_MEANING,
    "transaction.state.log.replication.factor": KeyClass.PROMISE,
    "transaction.state.log.min.isr": KeyClass.PROMISE,
    "transaction.state.log.segment.bytes": KeyClass.NO_MEANING,
    "transaction.state.log.load.buffer.size": KeyClass.NO_MEANING,
    "transaction.max.timeout.ms": KeyClass.SERVED,
    "transactional.id.expiration.ms": KeyClass.SERVED,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": KeyClass.NO_MEANING,
    "transaction.remove.expired.transaction.cleanup.interval.ms": KeyClass.SERVED,
    "transaction.two.phase.commit.enable": KeyClass.SERVED,
    "transaction.partition.verification.enable": KeyClass.NO_MEANING,
    "producer.id.expiration.ms": KeyClass.SERVED,
    "producer.id.expiration.check.interval.ms": KeyClass.SERVED,
}
"""The keys of the reference of Kafka 4.4's transactions. Its last line, `transaction.version`, is a feature there."""


def test_every_key_of_kafka_is_known() -> None:
    assert len(KAFKAS_OWN) > 350
    assert KAFKAS_OWN - KAFKA_KEYS.keys() == set()
    removed = KAFKA_KEYS.keys() - KAFKAS_OWN - OF_THE_AUTHORIZER
    assert {name for name in removed if "removed" not in KAFKA_KEYS[name].reason} == {"delegation.token.master.key"}


def test_a_key_that_is_an_option_of_ours_is_served_by_it() -> None:
    same = {name for name, key in KAFKA_KEYS.items() if key.reason == SAME}
    assert same == (KAFKAS_OWN | OF_THE_AUTHORIZER) & options().keys()


def test_the_keys_of_transactions_are_served_or_passed_over_with_a_reason() -> None:
    assert {name: KAFKA_KEYS[name].key_class for name in OF_TRANSACTIONS} == OF_TRANSACTIONS
    assert all(KAFKA_KEYS[name].reason for name in OF_TRANSACTIONS)
    assert "transaction.version" in options()


def test_no_key_is_listed_twice() -> None:
    assert len(list(listed())) == len(KAFKA_KEYS)


@pytest.mark.parametrize("key_class", [KeyClass.SERVED, KeyClass.NO_MEANING])
def test_a_reason_is_a_sentence(key_class: KeyClass) -> None:
    reasons = {key.reason for key in KAFKA_KEYS.values() if key.key_class is key_class}
    assert reasons
    assert [reason for reason in reasons if not reason.endswith(".")] == []


def test_a_part_that_users_choose_is_no_obstacle() -> None:
    found = kafka_key("listener.name.external.ssl.keystore.location")
    assert found is not None
    assert found.key_class is KeyClass.PROMISE
    assert kafka_key("listeners.name") is None
