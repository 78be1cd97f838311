"""The sentences that users see when something is wrong between us and the cluster."""

import os
import traceback

import pytest
from pyspark.serializers import CloudPickleSerializer

from exacta.client.errors import (
    AuthenticationFailed,
    ConnectionLost,
    DeadlineExceeded,
    KafkaError,
    UnknownBootstrap,
    UnsupportedByBroker,
)
from exacta.client.routing import Client, UnknownTopic
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.spark.error_sentences import ClusterError, explained, explaining, refused_while_pickling, sentence_for
from exacta.spark.options import OptionError, SinkOptions, sink_options
from exacta.spark.sink.errors import NewerDriver, SinkError
from exacta.spark.sink.sink import marker_of
from exacta.spark.source.source import RefusedStreamReader

AT = "broker:9092"
NOBODY = Client(AT)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")
    monkeypatch.setenv("PYTHON_WORKER_FACTORY_PORT", "1")  # as in a worker of Spark's


def exceeded(cause):
    try:
        raise DeadlineExceeded(f"gave up after 120 s: {cause}") from cause
    except DeadlineExceeded as error:
        return error


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (UnknownTopic("orders", AT), "topic 'orders' does not exist on broker:9092: create it, or look at its name"),
        (
            exceeded(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "looking up topic 'orders'")),
            "looking up topic 'orders' found none on broker:9092, and the cluster creates none on demand: create it "
            "first",
        ),
        (
            NOBODY.refused(
                InitProducerIdRequest(transactional_id="q-driver"),
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "taking over transactional id 'q-driver'",
            ),
            "broker:9092 does not permit taking over transactional id 'q-driver': a client that does not log in needs "
            "the permission Write on transactional id 'q-driver', and the same for all transactional ids of this "
            "query: they begin with its id, or with what option 'transactional.id.prefix' says",
        ),
        (
            NOBODY.refused(
                ProduceRequest(topic_data=[TopicProduceData(name="orders")]),
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                "writing to orders-0",
            ),
            "broker:9092 does not permit writing to orders-0: a client that does not log in needs the permission Write "
            "on topic 'orders'",
        ),
        (
            AuthenticationFailed("broker:9092 refused user 'u' by PLAIN: no"),
            "broker:9092 refused user 'u' by PLAIN: no",
        ),
        (
            KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "looking up topic 'a/b'"),
            "broker:9092 refused looking up topic 'a/b': INVALID_TOPIC_EXCEPTION: a topic's name has at most 249 "
            "characters, which are letters and digits of ASCII, '.', '_' and '-'",
        ),
        (
            KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, "looking at group 'a'"),
            "broker:9092 refused looking at group 'a': GROUP_ID_NOT_FOUND",
        ),
        (
            UnknownBootstrap("cannot connect to broker:9092: this machine knows no host 'broker' (why)"),
            "cannot connect to broker:9092: this machine knows no host 'broker' (why): is 'kafka.bootstrap.servers' "
            "right?",
        ),
        (UnsupportedByBroker("broker:9092 is too old"), "broker:9092 is too old"),
        (
            exceeded(ConnectionLost("broker:9092: Connection refused")),
            "the cluster at broker:9092 did not answer as it should for 120 s (broker:9092: Connection refused): are "
            "its brokers up, can they be reached from the driver and from every executor, and is "
            "'kafka.bootstrap.servers' right?",
        ),
    ],
)
def test_what_the_cluster_refuses_is_a_sentence_with_its_remedy(error, sentence):
    assert sentence_for(error, AT) == sentence
    with pytest.raises(ClusterError) as raised, explained(AT):
        raise error
    assert str(raised.value) == sentence
    assert os.environ["SPARK_HIDE_TRACEBACK"]


@pytest.mark.parametrize("error", [NewerDriver("q"), OptionError("option 'topic' is empty")])
def test_what_is_a_sentence_already_stays_as_it_is(error):
    with pytest.raises(type(error)) as raised, explained(AT):
        raise error
    assert raised.value is error
    assert os.environ["SPARK_HIDE_TRACEBACK"]


def test_what_nobody_expected_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), explained(AT):
        raise ZeroDivisionError
    assert not os.environ["SPARK_HIDE_TRACEBACK"]


def test_the_users_own_process_is_left_as_it_is():
    with pytest.raises(ClusterError), explained(AT, in_worker=False):
        raise UnknownTopic("orders", AT)
    assert not os.environ["SPARK_HIDE_TRACEBACK"]


def test_outside_of_sparks_workers_nothing_is_hidden(monkeypatch):
    monkeypatch.delenv("PYTHON_WORKER_FACTORY_PORT")
    with pytest.raises(ClusterError), explained(AT):
        raise UnknownTopic("orders", AT)
    assert not os.environ["SPARK_HIDE_TRACEBACK"]


def test_a_method_that_spark_calls_knows_the_cluster_by_its_options():
    class Writer:
        options = SinkOptions(bootstrap=AT)

        @explaining
        def write(self, topic):
            raise UnknownTopic(topic, AT)

    with pytest.raises(ClusterError, match="topic 'orders' does not exist"):
        Writer().write("orders")


def test_what_the_data_source_refuses_is_shown_as_just_that():
    with pytest.raises(OptionError):
        explained()(sink_options)({})
    assert os.environ["SPARK_HIDE_TRACEBACK"]


@pytest.mark.parametrize("method", ["initialOffset", "latestOffset", "partitions", "read"])
def test_a_reader_whose_options_are_wrong_says_so_whatever_it_is_asked_first(method):
    reader = RefusedStreamReader(OptionError("no such option"))
    arguments = {"initialOffset": 0, "latestOffset": 2, "partitions": 2, "read": 1}[method]
    with pytest.raises(OptionError, match="no such option"):
        getattr(reader, method)(*[None] * arguments)
    assert os.environ["SPARK_HIDE_TRACEBACK"]


def test_what_belongs_to_no_cluster_that_is_known_stays_as_it_is():
    error = UnknownTopic("orders", AT)
    with pytest.raises(UnknownTopic) as raised, explained():
        raise error
    assert raised.value is error
    assert not os.environ["SPARK_HIDE_TRACEBACK"]


def test_brokers_that_cannot_be_reached():
    """A port on which nobody listens."""
    options = SinkOptions(bootstrap="127.0.0.1:1", topic="orders")
    with (
        Client(options.bootstrap, call_timeout_ms=300) as client,
        pytest.raises(ClusterError, match=r"the cluster at 127\.0\.0\.1:1 did not answer as it should for 0\.3 s"),
        explained(options.bootstrap),
    ):
        marker_of(client, options)


def test_what_is_refused_while_spark_pickles_is_shown_as_it_is():
    class Writer:
        def __getstate__(self):
            with refused_while_pickling(), explained("here:1"):
                raise NewerDriver("q")

    with pytest.raises(SinkError, match=r"^query q was taken over") as refused:
        CloudPickleSerializer().dumps(Writer())
    [shown] = traceback.format_exception_only(refused.value)  # as Spark's worker does
    assert shown.startswith("exacta.spark.sink.errors.NewerDriver: query q was taken over")
