"""Options that Spark's own connector hands on to Kafka's clients in Java, and that this source and sink do not have.

This module owns which of them are *harmless* and which are *refused*. A harmless option cannot change which rows are
read or written, nor where to: it tunes the Java client, or belongs to a consumer group that a reader in Spark is no
working member of. It is accepted, and the log names it. A refused option, if it were passed over, would change what the
user gets. The names are those of `ProducerConfig` and `ConsumerConfig` of Apache Kafka 4.4. All that Spark's own
connector refuses is refused here.

A producer's options mean nothing to a reader, and a consumer's nothing to a writer: Kafka's clients pass over them, and
jobs hand the same options to both.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from exacta.spark.options.parsing import Option, only, refused


class Harmless(Struct, frozen=True):
    """Options without effect, for one reason, which goes on from "have no effect: "."""

    names: tuple[str, ...]
    why: str


def _kafka(names: str) -> tuple[str, ...]:
    return tuple(f"kafka.{name}" for name in names.split())


_JAVA: Final = "no class of Java is loaded here"


def _refused(name: str, remedy: str, about: str) -> Option:
    return Option(name=name, field=None, parse=refused(remedy), default="", about=about)


def _only(name: str, *allowed: str, why: str) -> Option:
    shown = ", ".join(f"`{value}`" for value in allowed)
    return Option(name=name, field=None, parse=only(*allowed, why=why), default="", about=f"may be {shown}: {why}")


def _java_class(name: str, remedy: str) -> Option:
    return _refused(name, f"names a class of Java, and {_JAVA}: {remedy}", f"{_JAVA}; {remedy}")


# --- both clients -----------------------------------------------------------------------------------------------------

COMMON_HARMLESS: Final = (
    Harmless(
        _kafka(
            "reconnect.backoff.ms reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms "
            "socket.connection.setup.timeout.ms socket.connection.setup.timeout.max.ms connections.max.idle.ms "
            "bootstrap.resolve.timeout.ms"
        ),
        "connections and requests are repeated at intervals of our own, until a time-out that has an option",
    ),
    Harmless(
        _kafka("metadata.max.age.ms metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms"),
        "brokers and leaders are looked up when they are needed, if need be at the bootstrap servers again",
    ),
    Harmless(_kafka("receive.buffer.bytes send.buffer.bytes"), "sockets keep the buffers of the operating system"),
    Harmless(
        _kafka(
            "metrics.num.samples metrics.recording.level metrics.sample.window.ms enable.metrics.push "
            "auto.include.jmx.reporter"
        ),
        "there are no metrics of a Java client",
    ),
    Harmless(_kafka("client.rack"), "each partition is read from its leader, and written to its leader"),
    Harmless(
        _kafka(
            "sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name "
            "sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor "
            "sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds "
            "sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter "
            "sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms "
            "sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer "
            "sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud "
            "sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss "
            "sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds "
            "sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file "
            "sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase "
            "sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id "
            "sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds "
            "sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode "
            "sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms "
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url "
            "sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope "
            "sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url"
        ),
        "they belong to Kerberos and OAUTHBEARER, and the login is one by name and password (PLAIN or SCRAM)",
    ),
)

COMMON_REFUSED: Final = (
    _java_class("kafka.interceptor.classes", "do in the query what the interceptor does"),
    _java_class(
        "kafka.metric.reporters", "leave it out; exacta.spark.watch_offsets(spark) logs how far behind a query is"
    ),
    _java_class("kafka.security.providers", "leave it out, for TLS is OpenSSL's"),
    _java_class("kafka.ssl.engine.factory.class", "leave it out, for TLS is OpenSSL's"),
    _java_class("kafka.sasl.client.callback.handler.class", "log in by PLAIN or SCRAM"),
    _java_class("kafka.sasl.login.callback.handler.class", "log in by PLAIN or SCRAM"),
    _java_class("kafka.sasl.login.class", "log in by PLAIN or SCRAM"),
    _refused(
        "kafka.config.providers",
        "is not supported, and values such as ${file:...} would be taken as they stand: read the secret in the job, "
        "and set the option to it",
        "values such as `${file:…}` would be taken as they stand",
    ),
    _refused(
        "kafka.ssl.cipher.suites",
        "is not supported, and passing over it would allow others: leave it out, and restrict them at the brokers",
        "passing over it would allow others; restrict them at the brokers",
    ),
    *(
        _refused(
            name,
            "chooses an implementation in Java, and TLS is OpenSSL's here: leave it out",
            "chooses an implementation in Java; TLS is OpenSSL's",
        )
        for name in ("kafka.ssl.provider", "kafka.ssl.secure.random.implementation")
    ),
    *(
        _only(name, "PKIX", "SunX509", why="certificates are verified by OpenSSL")
        for name in ("kafka.ssl.keymanager.algorithm", "kafka.ssl.trustmanager.algorithm")
    ),
    _only(
        "kafka.ssl.enabled.protocols",
        "TLSv1.2,TLSv1.3",
        "TLSv1.3,TLSv1.2",
        why="both are offered, and the broker chooses",
    ),
    _only("kafka.ssl.protocol", "TLSv1.3", "TLSv1.2", "TLS", why="TLS 1.2 and 1.3 are offered, and the broker chooses"),
    _only("kafka.client.dns.lookup", "use_all_dns_ips", why="all addresses of a name are tried, and no other name"),
    _only("kafka.metadata.cluster.check.enable", "false", why="it is not checked that a broker is of the same cluster"),
)

# --- producers --------------------------------------------------------------------------------------------------------

PRODUCER_SUPPORTED: Final = _kafka(
    "acks batch.size compression.type delivery.timeout.ms enable.idempotence transaction.timeout.ms"
)
"""The producer options that the sink has in its own table."""

PRODUCER_HARMLESS: Final = (
    Harmless(
        _kafka("linger.ms"),
        "a batch is sent when it is full, or when its task has no more rows",
    ),
    Harmless(
        _kafka("buffer.memory buffer.memory.allocation.strategy max.in.flight.requests.per.connection"),
        "a task keeps a few batches in flight, and their order by sequence numbers",
    ),
    Harmless(_kafka("retries max.block.ms"), "requests are repeated until `kafka.delivery.timeout.ms`"),
    Harmless(_kafka("max.request.size"), "the topic's `max.message.bytes` is the only limit"),
    Harmless(_kafka("metadata.max.idle.ms"), "a task looks the topics up to which it writes"),
    Harmless(
        _kafka("compression.gzip.level compression.lz4.level compression.zstd.level"),
        "codecs keep the level that they have by default",
    ),
    Harmless(
        _kafka("partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.rack.aware"),
        "rows without a key go to one partition after the other",
    ),
)

PRODUCER_REFUSED: Final = (
    *(
        _refused(
            f"kafka.{each}.serializer",
            f"is not supported: give column '{each}' its bytes in the query, as a string or binary",
            f"column `{each}` is written as it is",
        )
        for each in ("key", "value")
    ),
    _java_class("kafka.partitioner.class", "give the rows a column 'partition'"),
    _only(
        "kafka.partitioner.ignore.keys", "false", why="a row goes by its key; a column `partition` sends it elsewhere"
    ),
    _refused(
        "kafka.transactional.id",
        "is not supported, for each task needs an id of its own: set option 'transactional.id.prefix'",
        "each task has an id of its own; `transactional.id.prefix` says what they begin with",
    ),
    _only("kafka.transaction.two.phase.commit.enable", "false", why="the sink decides by a protocol of its own"),
)

# --- consumers --------------------------------------------------------------------------------------------------------

CONSUMER_SUPPORTED: Final = _kafka("isolation.level max.partition.fetch.bytes")
"""The consumer options that the source has in its own table."""

CONSUMER_HARMLESS: Final = (
    Harmless(
        (
            *_kafka(
                "session.timeout.ms heartbeat.interval.ms max.poll.interval.ms group.instance.id group.protocol "
                "group.remote.assignor partition.assignment.strategy auto.commit.interval.ms "
                "internal.throw.on.fetch.stable.offset.unsupported share.acknowledgement.mode share.acquire.mode"
            ),
            "groupIdPrefix",
        ),
        "the reader is no member of a consumer group",
    ),
    Harmless(
        (
            *_kafka("max.poll.records fetch.max.bytes fetch.min.bytes fetch.max.wait.ms default.api.timeout.ms"),
            "kafkaConsumer.pollTimeoutMs",
            "fetchOffset.numRetries",
            "fetchOffset.retryIntervalMs",
        ),
        "no consumer of Java polls: a task reads the offsets of its range, by fetches of "
        "`kafka.max.partition.fetch.bytes`",
    ),
    Harmless(_kafka("check.crcs"), "checksums are always verified"),
    Harmless(_kafka("allow.auto.create.topics"), "a reader never creates a topic"),
)

CONSUMER_REFUSED: Final = (
    _refused(
        "kafka.group.id",
        "is not supported, for this reader is no member of a consumer group, and needs no permission on one: leave it "
        "out; to have the offsets of finished batches committed to a group, name it in option 'commit.group.id'",
        "the reader is no member of a group; `commit.group.id` shows its offsets to lag tools",
    ),
    _refused(
        "kafka.auto.offset.reset",
        "is not for Spark, which keeps the offsets itself: set option 'startingOffsets', and 'failOnDataLoss' for "
        "offsets that are gone",
        "`startingOffsets` and `failOnDataLoss` say it",
    ),
    _refused(
        "kafka.enable.auto.commit",
        "is not for Spark, which keeps the offsets itself: leave it out; option 'commit.group.id' shows them to lag "
        "tools",
        "Spark keeps the offsets; `commit.group.id` shows them to lag tools",
    ),
    *(
        _refused(
            f"kafka.{each}.deserializer",
            f"is not supported: column '{each}' has the bytes; read them in the query",
            f"column `{each}` has the bytes",
        )
        for each in ("key", "value")
    ),
    _only("kafka.exclude.internal.topics", "true", why="a pattern never finds internal topics; `subscribe` names them"),
)

# --- sides ------------------------------------------------------------------------------------------------------------


def _names(harmless: Iterable[Harmless], refusals: Iterable[Option], supported: tuple[str, ...]) -> tuple[str, ...]:
    return (*(name for each in harmless for name in each.names), *(each.name for each in refusals), *supported)


_OF_CONSUMERS: Final = Harmless(
    _names(CONSUMER_HARMLESS, CONSUMER_REFUSED, CONSUMER_SUPPORTED), "they are for consumers, and this is a writer"
)
_OF_PRODUCERS: Final = Harmless(
    _names(PRODUCER_HARMLESS, PRODUCER_REFUSED, PRODUCER_SUPPORTED), "they are for producers, and this is a reader"
)


def _reasons(*harmless: Harmless) -> dict[str, str]:
    return {name: each.why for each in harmless for name in each.names}


HARMLESS_FOR_SINK: Final = _reasons(*COMMON_HARMLESS, *PRODUCER_HARMLESS, _OF_CONSUMERS)
"""The reason why an option has no effect, by the option's name."""
HARMLESS_FOR_SOURCE: Final = _reasons(*COMMON_HARMLESS, *CONSUMER_HARMLESS, _OF_PRODUCERS)
