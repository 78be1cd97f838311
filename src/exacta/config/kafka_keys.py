"""Kafka's keys of `server.properties` that have a meaning here: served, or a promise that is not kept.

This module owns the table, as data. `exacta.server.configuration_file` goes by it, and
`docs/reference/configuration.md` shows it.

- SERVED: the key sets an option of ours, or says where the server listens and keeps its data.
- PROMISE: the key promises what is not done here, unless it has one of the values in `kept`. A line of its own names
  the key and says why.

Apache Kafka 4.4 has 380 keys, and each release of Kafka has others. Most of them tune what does not exist here. Such a
key is in no list: it is unknown here, and has no effect. A key that promises anything to a client must be in the table.
"""

from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct


class KeyClass(Enum):
    """The class of a Kafka key."""

    SERVED = auto()
    PROMISE = auto()


class KafkaKey(Struct, frozen=True, kw_only=True):
    """One key: for a served one `reason` says by what it is served, for others why it is not."""

    name: str
    key_class: KeyClass
    reason: str
    kept: tuple[str, ...] = ()
    """The values of a promise that ask for nothing more than what is done, in lower case."""


SAME = "The option of the same name."

_SERVED = {
    SAME: """
        allow.everyone.if.no.acl.found authorizer.class.name auto.create.topics.enable broker.rack
        connection.failed.authentication.delay.ms connections.max.idle.ms connections.max.reauth.ms fetch.max.bytes
        group.consumer.assignors group.consumer.heartbeat.interval.ms group.consumer.max.size
        group.consumer.session.timeout.ms group.initial.rebalance.delay.ms group.max.session.timeout.ms group.max.size
        group.min.session.timeout.ms log.cleaner.backoff.ms log.flush.interval.ms log.retention.bytes
        log.retention.check.interval.ms log.retention.ms log.roll.ms log.segment.bytes max.connections
        max.connections.per.ip max.incremental.fetch.session.cache.slots message.max.bytes node.id num.partitions
        offset.metadata.max.bytes offsets.retention.check.interval.ms offsets.retention.minutes
        producer.id.expiration.check.interval.ms producer.id.expiration.ms queued.max.request.bytes
        sasl.enabled.mechanisms sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
        sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.url
        sasl.oauthbearer.sub.claim.name sasl.server.max.receive.size socket.request.max.bytes ssl.client.auth
        ssl.enabled.protocols ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
        ssl.keystore.password ssl.keystore.type ssl.principal.mapping.rules ssl.truststore.certificates
        ssl.truststore.location ssl.truststore.password ssl.truststore.type super.users transaction.max.timeout.ms
        transaction.remove.expired.transaction.cleanup.interval.ms transaction.two.phase.commit.enable
        transactional.id.expiration.ms""",
    "It is `listen`, or several of it, each with its security; those of controllers are left out.": "listeners",
    "It is `advertise`, for each listener that is served.": "advertised.listeners",
    "It says which of the listeners are of controllers.": "controller.listener.names",
    "It says which security protocol a listener has.": "listener.security.protocol.map",
    "It is refused: there is one broker, which needs no listener for others.": "inter.broker.listener.name",
    "It is `data`: one directory.": "log.dirs log.dir",
    "It is `log.retention.ms`, which wins if it is set. Minutes win over hours.": (
        "log.retention.hours log.retention.minutes"
    ),
    "It is `log.roll.ms`, which wins if it is set.": "log.roll.hours",
    "It is `node.id`, which wins if it is set.": "broker.id",
}

_ONE_REPLICA = "there is one replica"
_NO_CLASSES = "classes of Java are not loaded"
_ON_TOPICS = "the broker has no default of its own for it; set {} on the topics"
_BY_LISTENERS = "Kafka has removed it; say it by listeners, or by advertised.listeners"

_PROMISES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("default.replication.factor", _ONE_REPLICA, ("1", "-1")),
    ("min.insync.replicas", _ONE_REPLICA, ("1",)),
    ("offsets.topic.replication.factor", _ONE_REPLICA, ("1",)),
    ("transaction.state.log.min.isr", _ONE_REPLICA, ("1",)),
    ("transaction.state.log.replication.factor", _ONE_REPLICA, ("1",)),
    ("ssl.cipher.suites", "OpenSSL's own choice of ciphers is offered", ("",)),
    ("alter.config.policy.class.name", f"{_NO_CLASSES}: no policy is asked", ("",)),
    ("create.topic.policy.class.name", f"{_NO_CLASSES}: no policy is asked", ("",)),
    ("client.quota.callback.class", "quotas are found by Kafka's own levels, and no class can be given", ("",)),
    ("config.providers", "values that lie elsewhere are not fetched", ("",)),
    ("delegation.token.secret.key", "there are no delegation tokens", ("",)),
    ("delegation.token.master.key", "there are no delegation tokens", ("",)),
    ("delete.topic.enable", "every client may delete topics", ("true",)),
    ("group.coordinator.rebalance.protocols", "the protocols classic and consumer are served", ("classic,consumer",)),
    ("group.consumer.migration.policy", "groups move to the other protocol in both directions", ("bidirectional",)),
    ("kafka.metrics.reporters", _NO_CLASSES, ("",)),
    ("principal.builder.class", f"{_NO_CLASSES}: ssl.principal.mapping.rules names who has a certificate", ("",)),
    ("sasl.jaas.config", "users lie in the log, and `exacta users add` makes them", ("",)),
    ("metric.reporters", _NO_CLASSES, ("", "org.apache.kafka.common.metrics.jmxreporter")),
    ("max.connection.creation.rate", "connections a second are bounded by quotas of addresses", ("2147483647",)),
    ("max.connections.per.ip.overrides", "max.connections.per.ip holds for all addresses", ("",)),
    ("remote.log.storage.system.enable", "there is one storage", ("false",)),
    ("log.cleaner.enable", "compacted topics are always compacted", ("true",)),
    ("compression.type", _ON_TOPICS.format("compression.type"), ("producer",)),
    ("log.cleanup.policy", _ON_TOPICS.format("cleanup.policy"), ("delete",)),
    ("log.cleaner.delete.retention.ms", _ON_TOPICS.format("delete.retention.ms"), ("86400000",)),
    ("log.cleaner.max.compaction.lag.ms", _ON_TOPICS.format("max.compaction.lag.ms"), ("9223372036854775807",)),
    ("log.cleaner.min.cleanable.ratio", _ON_TOPICS.format("min.cleanable.dirty.ratio"), ("0.5",)),
    ("log.cleaner.min.compaction.lag.ms", _ON_TOPICS.format("min.compaction.lag.ms"), ("0",)),
    ("log.message.timestamp.type", _ON_TOPICS.format("message.timestamp.type"), ("createtime",)),
    (
        "log.message.timestamp.before.max.ms",
        _ON_TOPICS.format("message.timestamp.before.max.ms"),
        ("9223372036854775807",),
    ),
    ("log.message.timestamp.after.max.ms", _ON_TOPICS.format("message.timestamp.after.max.ms"), ("3600000",)),
    ("log.message.timestamp.difference.max.ms", "Kafka 4 has removed it", ("9223372036854775807",)),
    *((name, _BY_LISTENERS, ()) for name in ("advertised.host.name", "advertised.port", "host.name", "port")),
)

VALUES_NOT_KEPT = {
    ("queued.max.request.bytes", "-1"): "the memory for requests is always bounded, by the option's default",
    ("log.flush.interval.ms", "9223372036854775807"): "what needs no sync of its own is synced by the option's default",
}
"""Values of Kafka's that an option of the same name cannot have here, and what happens instead; they are promises."""

_OF_ONE_LISTENER = "listener.name."
"""The beginning of keys that hold for one listener alone; users choose the name that follows."""


def listed() -> Iterator[KafkaKey]:
    """Yield the keys in the order of the tables above."""
    for reason, names in _SERVED.items():
        for name in names.split():
            yield KafkaKey(name=name, key_class=KeyClass.SERVED, reason=reason)
    for name, reason, kept in _PROMISES:
        yield KafkaKey(name=name, key_class=KeyClass.PROMISE, reason=reason, kept=kept)


KAFKA_KEYS: dict[str, KafkaKey] = {each.name: each for each in sorted(listed(), key=lambda each: each.name)}
"""Kafka's keys by name."""


def kafka_key(name: str) -> KafkaKey | None:
    """Return what is known of a key, or None if it has no meaning here."""
    if name.startswith(_OF_ONE_LISTENER):
        return KafkaKey(
            name=name,
            key_class=KeyClass.PROMISE,
            reason="of one listener alone are TLS and sasl.enabled.mechanisms",
        )
    return KAFKA_KEYS.get(name)
