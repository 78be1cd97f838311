"""A read behind a write on one connection shows the write, also where the write is not answered yet (decision 0028).

Every write, and behind it every read: the answer is the one that a client gets that waits in between. With
EXACTA_TEST_BROKER=kafka Apache Kafka is asked the same.
"""

from collections.abc import Iterator

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.conformance import brokers
from tests.kafka.by_hand import Broker, Client
from tests.kafka.pipelined_shown import READS, ReadRequest
from tests.kafka.pipelined_writes import WRITES, Scene, done, prepared
from tests.kafka.wire import Wire

EXACTAS_OWN = ("Ask, lag",)
LATER_ON_KAFKA = {
    # The controller answers; the broker learns of it after that.
    "CreateTopics",
    "CreatePartitions",
    "DeleteTopics",
    # The coordinator answers; the markers are written after that.
    "EndTxn",
    "InitProducerId",
    "TxnOffsetCommit, EndTxn",
}
"""Apache Kafka may show these later, also to a client that waits for the answer."""


def scene_by_hand() -> tuple[Client, Scene]:
    broker = Broker()
    client = broker.connect()
    scene = prepared(lambda message, version: broker.ask(client, message, version))
    broker.pass_time(1_000)  # all of it is durable
    return client, scene


def shown(client: Client, read: ReadRequest) -> object:
    return read.shown(client.broker.ask(client, read.message, read.version))


def shown_to_the_patient(write: str, read: str) -> tuple[object, object]:
    """Return what a read shows before a write, and after it, to a client that waits for its answers."""
    client, scene = scene_by_hand()
    before = shown(client, READS[read](scene))
    for message, version in WRITES[write](scene):
        done(lambda *asked: client.broker.ask(client, *asked), message, version)
    return before, shown(client, READS[read](scene))


@pytest.mark.sweep
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", WRITES)
def test_a_read_shows_the_write_before_it(write: str, read: str) -> None:
    before, after = shown_to_the_patient(write, read)
    client, scene = scene_by_hand()
    broker, asked = client.broker, READS[read](scene)
    broker.hold_syncs()
    sent = [*WRITES[write](scene), (asked.message, asked.version)]
    client.send_bytes(b"".join(client.frame(message, version) for message, version in sent))
    broker.settle()
    early = client.answers()
    if before != after:
        assert len(early) < len(sent), "what is not durable was shown"
    broker.release_syncs()
    broker.settle()
    answers = [*early, *client.answers()]
    assert len(answers) == len(sent)
    assert asked.shown(answers[-1][1]) == after


@pytest.mark.sweep
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", WRITES)
def test_a_read_on_another_connection_shows_nothing_that_is_not_durable(write: str, read: str) -> None:
    before, _ = shown_to_the_patient(write, read)
    client, scene = scene_by_hand()
    broker, asked = client.broker, READS[read](scene)
    other = broker.connect()
    broker.hold_syncs()
    client.send_bytes(b"".join(client.frame(message, version) for message, version in WRITES[write](scene)))
    broker.settle()
    other.send(asked.message, asked.version)
    broker.settle()
    early = other.answers()
    assert all(asked.shown(answer) == before for _, answer in early)
    broker.release_syncs()
    broker.settle()
    assert len([*early, *other.answers()]) == 1


def test_a_fetch_by_topic_id_says_that_the_topic_is_gone_once_that_is_durable() -> None:
    client, scene = scene_by_hand()
    broker, other = client.broker, client.broker.connect()
    named = MetadataRequest(topics=[MetadataRequestTopic(name=scene.topic)])
    [topic] = broker.ask(other, named, 12).topics
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(topics=[FetchTopic(topic_id=topic.topic_id, partitions=[partition])], max_bytes=1 << 20)
    broker.hold_syncs()
    [(deletion, version)] = WRITES["DeleteTopics"](scene)
    client.send(deletion, version)
    other.send(fetch, 13)
    broker.settle()
    assert other.answers() == []
    broker.release_syncs()
    broker.settle()
    [(_, answer)] = other.answers()
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_every_write_is_shown_by_a_read_and_every_read_shows_a_write() -> None:
    changed = {
        (write, read)
        for write in WRITES
        for read in READS
        if len(set(map(repr, shown_to_the_patient(write, read)))) == 2
    }
    assert {write for write, _ in changed} == set(WRITES)
    assert {read for _, read in changed} == set(READS)


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A connection to the broker under test."""
    with brokers.plain_broker(tmp_path_factory.mktemp("broker")) as bootstrap:
        host, port = bootstrap.split(":")
        wire = Wire((host, int(port)))
        yield wire
        wire.socket.close()


@pytest.mark.skipif(not brokers.ON_KAFKA, reason="asks an Apache Kafka: set EXACTA_TEST_BROKER=kafka")
@pytest.mark.parametrize("write", sorted(WRITES.keys() - LATER_ON_KAFKA))
def test_apache_kafka_shows_the_write_before_a_read(wire: Wire, write: str) -> None:
    differing = {}
    for name, read in READS.items():
        if name in EXACTAS_OWN:
            continue
        patient, hasty = prepared(wire.ask), prepared(wire.ask)
        asked = read(patient)
        before = asked.shown(wire.ask(asked.message, asked.version))
        for message, version in WRITES[write](patient):
            done(wire.ask, message, version)
        after = asked.shown(wire.ask(asked.message, asked.version))
        asked = read(hasty)
        sent = [*WRITES[write](hasty), (asked.message, asked.version)]
        for message, version in sent:
            wire.send(message, version)
        answers = [wire.receive(message, version)[1] for message, version in sent]
        if before != after != (found := asked.shown(answers[-1])):
            differing[name] = found, after
    assert differing == {}
