"""Kafka's keys that have a meaning here: each has a class and a reason, and no promise is missing among them."""

from pathlib import Path

from exacta.config.kafka_keys import KAFKA_KEYS, SAME, KeyClass, kafka_key, listed
from exacta.config.options import options

KAFKAS_OWN = frozenset((Path(__file__).parent / "kafka-4.4-broker-keys.txt").read_text().split())
"""The keys that `KafkaConfig.configDef()` of Apache Kafka 4.4 has."""

OF_THE_AUTHORIZER = {"super.users", "allow.everyone.if.no.acl.found"}
"""The keys that `StandardAuthorizer` reads beside them."""

OF_TRANSACTIONS = {
    "transaction.state.log.replication.factor": KeyClass.PROMISE,
    "transaction.state.log.min.isr": KeyClass.PROMISE,
    "transaction.max.timeout.ms": KeyClass.SERVED,
    "transactional.id.expiration.ms": KeyClass.SERVED,
    "transaction.remove.expired.transaction.cleanup.interval.ms": KeyClass.SERVED,
    "transaction.two.phase.commit.enable": KeyClass.SERVED,
    "producer.id.expiration.ms": KeyClass.SERVED,
    "producer.id.expiration.check.interval.ms": KeyClass.SERVED,
}
"""The keys of the reference of Kafka 4.4's transactions. Its last line, `transaction.version`, is a feature there."""


PROMISES = {
    "advertised.host.name", "advertised.port", "alter.config.policy.class.name",
    "client.quota.callback.class", "compression.type", "config.providers",
    "create.topic.policy.class.name", "default.replication.factor", "delegation.token.master.key",
    "delegation.token.secret.key", "delete.topic.enable", "group.consumer.migration.policy",
    "group.coordinator.rebalance.protocols", "host.name", "kafka.metrics.reporters", "log.cleaner.delete.retention.ms",
    "log.cleaner.enable", "log.cleaner.max.compaction.lag.ms", "log.cleaner.min.cleanable.ratio",
    "log.cleaner.min.compaction.lag.ms", "log.cleanup.policy", "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms", "log.message.timestamp.difference.max.ms", "log.message.timestamp.type",
    "max.connection.creation.rate", "max.connections.per.ip.overrides", "metric.reporters", "min.insync.replicas",
    "offsets.topic.replication.factor", "port", "remote.log.storage.system.enable", "ssl.cipher.suites",
    "transaction.state.log.min.isr", "transaction.state.log.replication.factor",
    "principal.builder.class", "sasl.jaas.config",
}  # fmt: skip
"""The keys that promise replicas, policies, bounds or topics' defaults. None may become a key without effect."""


def test_no_promise_is_passed_over() -> None:
    assert {name for name, key in KAFKA_KEYS.items() if key.key_class is KeyClass.PROMISE} == PROMISES


def test_a_key_that_is_an_option_of_ours_is_served_by_it() -> None:
    same = {name for name, key in KAFKA_KEYS.items() if key.reason == SAME}
    assert same == (KAFKAS_OWN | OF_THE_AUTHORIZER) & options().keys()


def test_the_keys_of_transactions_are_served_or_promises_with_a_reason() -> None:
    assert {name: KAFKA_KEYS[name].key_class for name in OF_TRANSACTIONS} == OF_TRANSACTIONS
    assert all(KAFKA_KEYS[name].reason for name in OF_TRANSACTIONS)
    assert "transaction.version" in options()


def test_no_key_is_listed_twice() -> None:
    assert len(list(listed())) == len(KAFKA_KEYS)


def test_what_serves_a_key_is_told_in_a_sentence() -> None:
    reasons = {key.reason for key in KAFKA_KEYS.values() if key.key_class is KeyClass.SERVED}
    assert [reason for reason in reasons if not reason.endswith(".")] == []


def test_a_part_that_users_choose_is_no_obstacle() -> None:
    found = kafka_key("listener.name.external.ssl.keystore.location")
    assert found is not None
    assert found.key_class is KeyClass.PROMISE
    assert kafka_key("listeners.name") is None
