"""Options that Spark's own connector hands on to Kafka's clients in Java, and that would change what the user gets.

This module owns those that are *refused*: passing over one would change which rows are read or written, where to, or
who may see them. The names are those of `ProducerConfig` and `ConsumerConfig` of Apache Kafka 4.4. All that Spark's own
connector refuses is refused here.

Some 130 further options tune the Java clients, or belong to a consumer group that a reader in Spark is no member of.
They are in no list: `parsing.py` takes an option `kafka.…` that it does not know as one without effect. A producer's
options mean nothing to a reader, and a consumer's nothing to a writer: Kafka's clients pass over them, and jobs hand
the same options to both.
"""

from typing import Final

from exacta.spark.options.parsing import Option, only, refused

_JAVA: Final = "no class of Java is loaded here"


def _refused(name: str, remedy: str, about: str) -> Option:
    return Option(name=name, field=None, parse=refused(remedy), default="", about=about)


def _only(name: str, *allowed: str, why: str) -> Option:
    shown = ", ".join(f"`{value}`" for value in allowed)
    return Option(name=name, field=None, parse=only(*allowed, why=why), default="", about=f"may be {shown}: {why}")


def _java_class(name: str, remedy: str) -> Option:
    return _refused(name, f"names a class of Java, and {_JAVA}: {remedy}", f"{_JAVA}; {remedy}")


# --- both clients -----------------------------------------------------------------------------------------------------

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
