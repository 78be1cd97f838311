"""Options of Kafka's Java clients have no effect or are refused, and one error says all that is wrong with options."""

import logging
import pickle

import pytest

from exacta.spark.options import OptionError, parsing, sink_options, source_options
from exacta.spark.options.foreach_batch import foreach_batch_options
from exacta.spark.options.kafka_clients import COMMON_REFUSED, CONSUMER_REFUSED, PRODUCER_REFUSED
from exacta.spark.options.sink import SINK
from exacta.spark.options.source import SOURCE

READING = {"kafka.bootstrap.servers": "a:1", "subscribe": "x"}
WRITING = {"kafka.bootstrap.servers": "a:1", "topic": "x"}

OF_BOTH = """
    bootstrap.resolve.timeout.ms bootstrap.servers client.dns.lookup client.id client.rack config.providers
    connections.max.idle.ms enable.metrics.push interceptor.classes metadata.cluster.check.enable
    metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms
    sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
    sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url security.protocol security.providers send.buffer.bytes
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms ssl.cipher.suites
    ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password
    ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
    ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation
    ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
    ssl.truststore.type
"""
"""The names that `ProducerConfig.configNames()` and `ConsumerConfig.configNames()` of Apache Kafka 4.4.0 return."""
OF_PRODUCERS = """
    acks batch.size buffer.memory buffer.memory.allocation.strategy compression.gzip.level compression.lz4.level
    compression.type compression.zstd.level delivery.timeout.ms enable.idempotence key.serializer linger.ms
    max.block.ms max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys partitioner.rack.aware retries transaction.timeout.ms
    transaction.two.phase.commit.enable transactional.id value.serializer
"""
OF_CONSUMERS = """
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs default.api.timeout.ms
    enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records partition.assignment.strategy session.timeout.ms
    share.acknowledgement.mode share.acquire.mode value.deserializer
"""


def options_in(text):
    return {f"kafka.{name}" for name in text.split()}


REFUSED = """
    auto.offset.reset client.dns.lookup config.providers enable.auto.commit exclude.internal.topics group.id
    interceptor.classes key.deserializer key.serializer metadata.cluster.check.enable metric.reporters partitioner.class
    partitioner.ignore.keys sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class
    security.providers ssl.cipher.suites ssl.enabled.protocols ssl.engine.factory.class ssl.keymanager.algorithm
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    transaction.two.phase.commit.enable transactional.id value.deserializer value.serializer
"""
"""Options that would change what a user gets. None may become one without effect."""


def names_of(table):
    return {option.name for option in table if option.name.startswith("kafka.")}


def test_no_option_that_changes_what_a_user_gets_is_passed_over():
    assert names_of((*COMMON_REFUSED, *PRODUCER_REFUSED, *CONSUMER_REFUSED)) == options_in(REFUSED)


@pytest.mark.parametrize("read", [True, False])
def test_each_option_of_kafkas_clients_is_known_or_has_no_effect(read):
    table = (*SOURCE, *COMMON_REFUSED, *CONSUMER_REFUSED) if read else (*SINK, *COMMON_REFUSED, *PRODUCER_REFUSED)
    every = options_in(OF_BOTH) | options_in(OF_PRODUCERS) | options_in(OF_CONSUMERS)
    parsed = parsing.parse(dict.fromkeys(every - names_of(table), "x"), table, "testing")
    assert parsed.problems == []
    assert parsed.without_effect.keys() == every - names_of(table)


@pytest.mark.parametrize(
    "name", ["kafka.isolation.levle", "kafka.max.partition.fetch.byte", "kafka.ssl.new", "kafka.security.protocols.new"]
)
def test_what_may_be_a_mistake_is_refused(name):
    with pytest.raises(OptionError, match="does not know option"):
        source_options({**READING, name: "x"})


@pytest.mark.parametrize("read", [True, False])
def test_harmless_options_are_taken_and_the_log_says_so_once(caplog, monkeypatch, read):
    monkeypatch.setattr(parsing, "_said", set())
    harmless = {
        "kafka.session.timeout.ms": "5",
        "kafka.max.poll.records": "5",
        "Kafka.Retries": "3",
        "kafka.linger.ms": "5",
        "kafkaConsumer.pollTimeoutMs": "5",
        "fetchOffset.numRetries": "5",
        "groupIdPrefix": "g",
    }
    with caplog.at_level(logging.WARNING, "exacta.spark"):
        for _ in range(2):
            assert (source_options if read else sink_options)({**(READING if read else WRITING), **harmless})
    (said,) = caplog.messages
    assert said.removeprefix('options without effect with format "exacta": ').removesuffix(" (unknown here)").split(
        ", "
    ) == sorted(harmless)


def test_what_only_triggers_need_is_taken_by_a_batch_as_by_sparks_own():
    triggers = {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "1", "maxTriggerDelay": "5m"}
    assert source_options({**READING, **triggers}, batch=True).max_offsets_per_trigger is None


def test_all_that_is_wrong_with_a_writers_options_is_said_in_one_error():
    wrong = {
        "kafka.acks": "1",
        "kafka.key.serializer": "a.B",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.batch.size": "many",
        "transactional.id.prefx": "orders",
        "kafka.linger.ms": "5",
    }
    with pytest.raises(OptionError) as refused:
        sink_options(wrong, stream=True)
    assert str(refused.value) == (
        "there are 8 problems:\n"
        "- option 'kafka.acks' can only be all or -1, not '1': exactly once depends on it\n"
        "- option 'kafka.key.serializer' is not supported: give column 'key' its bytes in the query, as a string or "
        "binary\n"
        "- option 'kafka.batch.size' must be a positive whole number, not 'many'\n"
        "- format \"exacta\" does not know option 'transactional.id.prefx' for writing; did you mean "
        "'transactional.id.prefix'?\n"
        "- writing needs option 'kafka.bootstrap.servers' (host:port,host:port)\n"
        "- option 'kafka.sasl.mechanism' has no effect with option 'kafka.security.protocol' PLAINTEXT: it needs "
        "SASL_PLAINTEXT or SASL_SSL\n"
        "- writing needs option 'checkpointLocation' as an .option(...) of the writer, also where the session has a "
        "default: the query's identity lies there, and the sink notes there what it is called on the cluster\n"
        "- writing needs a topic: set option 'topic'; or, where rows name their topics in a column 'topic', set "
        "option 'transaction.marker.topic' to the one whose first partition shall carry the replay markers"
    )
    assert pickle.loads(pickle.dumps(refused.value)).problems == refused.value.problems


def test_all_that_is_wrong_with_a_readers_options_is_said_in_one_error():
    wrong = {"kafka.group.id": "g", "startingOffsets": "first", "subscribe": "x", "endingOffsets": "latest"}
    with pytest.raises(OptionError) as refused:
        source_options(wrong)
    assert [problem.split("'")[1] for problem in refused.value.problems] == [
        "kafka.group.id",
        "startingOffsets",
        "kafka.bootstrap.servers",
        "endingOffsets",
    ]


def test_all_that_is_wrong_with_a_call_of_write_is_said_in_one_error():
    with pytest.raises(OptionError) as refused:
        foreach_batch_options({**WRITING, "sink.nam": "b", "driver.rows": "few", "kafka.acks": "0"})
    assert len(refused.value.problems) == 3
    assert "did you mean 'sink.name'?" in str(refused.value)


def test_a_wrong_value_is_not_taken_for_a_missing_option():
    with pytest.raises(OptionError) as refused:
        source_options({"kafka.bootstrap.servers": "a", "subscribe": " "})
    assert [problem.split(" ")[0] for problem in refused.value.problems] == ["option", "option"]
