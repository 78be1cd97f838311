"""Kafka's keys of `server.properties`, each with its class: served, without a meaning here, or a promise not kept.

This module owns the table, as data. It has every key of Apache Kafka 4.4, those that Kafka 4 has removed, and those of
Kafka's own authorizer. `exacta.server.configuration_file` goes by it, and `docs/reference/configuration.md` shows it.

- SERVED: the key sets an option of ours, or says where the server listens and keeps its data.
- NO_MEANING: nothing of what the key is about exists here, so that its value changes nothing. One line names all of
  these keys together.
- PROMISE: the key promises what is not done here, unless it has one of the values in `kept`. A line of its own names
  the key and says why.
"""

from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct


class KeyClass(Enum):
    """The class of a Kafka key."""

    SERVED = auto()
    NO_MEANING = auto()
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
        allow.everyone.if.no.acl.found authorizer.class.name auto.create.topics.enable connections.max.idle.ms
        fetch.max.bytes group.consumer.assignors group.consumer.heartbeat.interval.ms group.consumer.max.size
        group.consumer.session.timeout.ms group.initial.rebalance.delay.ms group.max.session.timeout.ms group.max.size
        group.min.session.timeout.ms log.cleaner.backoff.ms log.flush.interval.ms log.retention.bytes
        log.retention.check.interval.ms log.retention.ms log.roll.ms log.segment.bytes max.connections
        max.connections.per.ip max.incremental.fetch.session.cache.slots message.max.bytes node.id num.partitions
        offset.metadata.max.bytes offsets.retention.check.interval.ms offsets.retention.minutes
        producer.id.expiration.check.interval.ms producer.id.expiration.ms queued.max.request.bytes
        socket.request.max.bytes super.users transaction.max.timeout.ms
        transaction.remove.expired.transaction.cleanup.interval.ms transaction.two.phase.commit.enable
        transactional.id.expiration.ms""",
    "It is `listen`, or several of it. All must have the security protocol PLAINTEXT; those of controllers are left "
    "out.": "listeners",
    "It is `advertise`, for each listener that is served.": "advertised.listeners",
    "It says which of the listeners are of controllers.": "controller.listener.names",
    "It says which security protocol a listener has.": "listener.security.protocol.map",
    "It is `data`: one directory.": "log.dirs log.dir",
    "It is `log.retention.ms`, which wins if it is set. Minutes win over hours.": (
        "log.retention.hours log.retention.minutes"
    ),
    "It is `log.roll.ms`, which wins if it is set.": "log.roll.hours",
    "It is `node.id`, which wins if it is set.": "broker.id",
}

_NO_MEANING = {
    "There is one broker, and no controller beside it.": """
        auto.leader.rebalance.enable broker.heartbeat.interval.ms broker.rack broker.session.timeout.ms
        controlled.shutdown.enable controller.performance.always.log.threshold.ms
        controller.performance.sample.period.ms controller.quorum.append.linger.ms controller.quorum.auto.join.enable
        controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
        controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
        controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
        controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
        controller.socket.timeout.ms early.start.listeners initial.broker.registration.timeout.ms
        inter.broker.listener.name leader.imbalance.check.interval.seconds process.roles request.timeout.ms
        sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol security.inter.broker.protocol
        server.max.startup.time.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
        unstable.api.versions.enable unstable.feature.versions.enable""",
    "There is one replica of a partition.": """
        alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
        num.replica.alter.log.dirs.threads num.replica.fetchers replica.fetch.backoff.ms replica.fetch.max.bytes
        replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
        replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
        replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
        replication.quota.window.size.seconds unclean.leader.election.enable unclean.leader.election.interval.ms""",
    "Metadata lie in the journal, with everything else.": """
        internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
        internal.metadata.max.batch.size.in.bytes metadata.log.dir metadata.log.max.record.bytes.between.snapshots
        metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms
        metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms""",
    "There is one data directory.": "cordoned.log.dirs log.dir.failure.timeout.ms",
    "One thread decides, and others that need no number work for it.": """
        background.threads num.io.threads num.network.threads num.recovery.threads.per.data.dir
        group.coordinator.background.threads group.coordinator.threads log.cleaner.threads""",
    "Requests that wait are woken by what they wait for, or by their time-out.": """
        delete.records.purgatory.purge.interval.requests fetch.purgatory.purge.interval.requests
        producer.purgatory.purge.interval.requests share.fetch.purgatory.purge.interval.requests""",
    "`queued.max.request.bytes` and `max.in.flight.requests.per.connection` bound requests.": "queued.max.requests",
    "The operating system sizes the buffers of connections.": """
        socket.listen.backlog.size socket.receive.buffer.bytes socket.send.buffer.bytes""",
    "DescribeTopicPartitions has Kafka's own default as its bound, 2,000.": "max.request.partition.size.limit",
    "What is acknowledged or committed is on the disk.": """
        log.flush.interval.messages log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms
        log.flush.start.offset.checkpoint.interval.ms""",
    "Files hold many topics, grow as they are written, and have indexes as large as they must be.": """
        log.index.interval.bytes log.index.size.max.bytes log.initial.task.delay.ms log.preallocate
        log.roll.jitter.hours log.roll.jitter.ms log.segment.delete.delay.ms""",
    "The cleaner takes what memory and time it needs.": """
        log.cleaner.dedupe.buffer.size log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
        log.cleaner.io.max.bytes.per.second""",
    "The broker decompresses up to 64 MiB of one request, whatever is set.": ("max.decompressed.message.bytes"),
    "It belongs to `compression.type`, which topics set.": """
        compression.gzip.level compression.lz4.level compression.zstd.level""",
    "Each transaction has a timer of its own, and is aborted when its time is over.": (
        "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    ),
    "One writer decides about transactions and partitions together, so nothing is left to be verified.": """
        add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
        transaction.partition.verification.enable""",
    "The state of transactions lies in the journal. `__transaction_state` has 50 partitions and no records.": """
        transaction.state.log.load.buffer.size transaction.state.log.num.partitions
        transaction.state.log.segment.bytes""",
    "Offsets lie in the journal. `__consumer_offsets` has 50 partitions and no records.": """
        group.coordinator.append.linger.ms group.coordinator.cached.buffer.max.bytes offsets.commit.timeout.ms
        offsets.load.buffer.size offsets.topic.compression.codec offsets.topic.num.partitions
        offsets.topic.segment.bytes""",
    "Groups of the consumer protocol get a new assignment at once, and have no bounds of their own.": """
        group.consumer.assignment.interval.ms group.consumer.assignor.offload.enable
        group.consumer.max.assignment.interval.ms group.consumer.max.heartbeat.interval.ms
        group.consumer.max.session.timeout.ms group.consumer.min.assignment.interval.ms
        group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
        group.consumer.regex.refresh.interval.ms""",
    "There are no share groups.": """
        errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.topic.name.prefix
        group.share.assignment.interval.ms group.share.assignor.offload.enable group.share.assignors
        group.share.delivery.count.limit group.share.dlq.manager.class.name group.share.heartbeat.interval.ms
        group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms
        group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
        group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
        group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
        group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
        group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
        group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
        group.share.partition.max.record.locks group.share.persister.class.name group.share.record.lock.duration.ms
        group.share.session.timeout.ms share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
        share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
        share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
        share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions
        share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.replication.factor
        share.coordinator.state.topic.segment.bytes share.coordinator.threads share.coordinator.write.timeout.ms""",
    "There are no groups of the streams protocol (KIP-1071).": """
        group.streams.acceptable.recovery.lag group.streams.assignment.interval.ms
        group.streams.assignor.offload.enable group.streams.assignors group.streams.heartbeat.interval.ms
        group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
        group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
        group.streams.max.standby.replicas group.streams.max.warmup.replicas group.streams.min.assignment.interval.ms
        group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
        group.streams.min.task.offset.interval.ms group.streams.num.standby.replicas group.streams.num.warmup.replicas
        group.streams.rack.aware.assignment.tags group.streams.session.timeout.ms group.streams.task.offset.interval.ms
        group.streams.topology.description.plugin.class""",
    "There is one storage.": """
        follower.fetch.last.tiered.offset.enable log.local.retention.bytes log.local.retention.ms
        log.remote.copy.lag.bytes log.remote.copy.lag.ms remote.fetch.max.wait.ms
        remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
        remote.log.index.file.cache.ttl.ms remote.log.manager.copier.thread.pool.size
        remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
        remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
        remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
        remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter
        remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
        remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
        remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
        remote.log.reader.max.pending.tasks remote.log.reader.threads remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix""",
    "There are no quotas.": """
        controller.quota.window.num controller.quota.window.size.seconds quota.window.num quota.window.size.seconds""",
    "Kafka's metrics are of its Java virtual machine.": """
        kafka.metrics.polling.interval.secs metrics.num.samples metrics.recording.level metrics.sample.window.ms
        telemetry.max.bytes""",
    "Kafka's clients have no logins here. A listener that asks for them is refused.": """
        connection.failed.authentication.delay.ms connections.max.reauth.ms delegation.token.expiry.check.interval.ms
        delegation.token.expiry.time.ms delegation.token.max.lifetime.ms principal.builder.class
        sasl.client.callback.handler.class sasl.enabled.mechanisms sasl.jaas.config sasl.kerberos.kinit.cmd
        sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
        sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
        sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
        sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.allow.unverified.audience
        sasl.oauthbearer.allow.unverified.issuer sasl.oauthbearer.assertion.algorithm
        sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
        sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
        sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
        sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
        sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
        sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
        sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
        sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
        sasl.server.callback.handler.class sasl.server.max.receive.size""",
    "Kafka's clients have no TLS here. A listener that asks for it is refused.": """
        security.providers ssl.allow.dn.changes ssl.allow.san.changes ssl.cipher.suites ssl.client.auth
        ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password
        ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
        ssl.keystore.password ssl.keystore.type ssl.principal.mapping.rules ssl.protocol ssl.provider
        ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
        ssl.truststore.location ssl.truststore.password ssl.truststore.type""",
    "Kafka 4 has removed it.": """
        auto.include.jmx.reporter broker.id.generation.enable control.plane.listener.name
        controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms eligible.leader.replicas.enable
        group.coordinator.new.enable inter.broker.protocol.version log.message.downconversion.enable
        log.message.format.version offsets.commit.required.acks password.encoder.cipher.algorithm
        password.encoder.iterations password.encoder.key.length password.encoder.keyfactory.algorithm
        password.encoder.old.secret password.encoder.secret reserved.broker.max.id zookeeper.clientCnxnSocket
        zookeeper.connect zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests
        zookeeper.metadata.migration.enable zookeeper.session.timeout.ms zookeeper.set.acl""",
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
    ("alter.config.policy.class.name", f"{_NO_CLASSES}: no policy is asked", ("",)),
    ("create.topic.policy.class.name", f"{_NO_CLASSES}: no policy is asked", ("",)),
    ("client.quota.callback.class", "there are no quotas", ("",)),
    ("config.providers", "values that lie elsewhere are not fetched", ("",)),
    ("delegation.token.secret.key", "there are no delegation tokens", ("",)),
    ("delegation.token.master.key", "there are no delegation tokens", ("",)),
    ("delete.topic.enable", "every client may delete topics", ("true",)),
    ("group.coordinator.rebalance.protocols", "the protocols classic and consumer are served", ("classic,consumer",)),
    ("group.consumer.migration.policy", "groups move to the other protocol in both directions", ("bidirectional",)),
    ("kafka.metrics.reporters", _NO_CLASSES, ("",)),
    ("metric.reporters", _NO_CLASSES, ("", "org.apache.kafka.common.metrics.jmxreporter")),
    ("max.connection.creation.rate", "connections are bounded by number, not by rate", ("2147483647",)),
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

_FAMILIES = (
    ("listener.name.", KeyClass.PROMISE, "nothing is set for one listener alone"),
    ("rlmm.config.", KeyClass.NO_MEANING, "There is one storage."),
    ("rsm.config.", KeyClass.NO_MEANING, "There is one storage."),
    ("zookeeper.", KeyClass.NO_MEANING, "Kafka 4 has removed it."),
)
"""The beginnings of keys that have a part which users choose, or are too many to be listed."""


def listed() -> Iterator[KafkaKey]:
    """Yield the keys in the order of the tables above."""
    for key_class, groups in ((KeyClass.SERVED, _SERVED), (KeyClass.NO_MEANING, _NO_MEANING)):
        for reason, names in groups.items():
            for name in names.split():
                yield KafkaKey(name=name, key_class=key_class, reason=reason)
    for name, reason, kept in _PROMISES:
        yield KafkaKey(name=name, key_class=KeyClass.PROMISE, reason=reason, kept=kept)


KAFKA_KEYS: dict[str, KafkaKey] = {each.name: each for each in sorted(listed(), key=lambda each: each.name)}
"""Kafka's keys by name."""


def kafka_key(name: str) -> KafkaKey | None:
    """Return what is known of a key, or None if Kafka has none of this name."""
    known = KAFKA_KEYS.get(name)
    if known is None:
        for beginning, key_class, reason in _FAMILIES:
            if name.startswith(beginning):
                return KafkaKey(name=name, key_class=key_class, reason=reason)
    return known
