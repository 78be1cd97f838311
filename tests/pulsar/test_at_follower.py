"""Pulsar's front at a broker that follows: what it answers, where it sends its clients, and that it decides nothing."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass

from exacta.front.doors import Door, Endpoint, TransportSecurity
from exacta.ports.cluster import Node, Unmovable
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import NO_REQUEST
from exacta.pulsar.addresses import Addresses, Urls
from exacta.pulsar.at_follower import NOT_OPEN, SERVES
from exacta.pulsar.handlers import HANDLERS
from exacta.readmodel.cluster import ClusterStatus
from tests.pulsar.by_hand import Broker, send_frame

LEADER = Node(1, None, {"PULSAR": ("leader", 6650), "WEB": ("leader", 8080)})
ME = Node(2, None, {"PULSAR": ("h", 6650)})


class Known:
    """A cluster as a follower knows it; see `exacta.ports.cluster.Cluster`."""

    node_id = 2
    leads = False
    nodes: Sequence[Node] = (LEADER, ME)

    def __init__(self) -> None:
        self.leader: Node | None = LEADER

    def status(self) -> ClusterStatus:
        raise NotImplementedError

    def move(self, epoch: int, to: int | None) -> Unmovable | None:
        raise NotImplementedError

    def on_change(self, changed: Callable[[], None]) -> None:
        pass


class Follower(Broker):
    """A broker that follows: it catches up when `catch_up` is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.cluster = Known()
        self.context.cluster = self.cluster
        self.behind: list[Callable[[], None]] = []
        engine: Any = self.engine
        engine.catch_up, engine.submit = self.behind.append, self._decides

    def _decides(self, *_: Any, **__: Any) -> int:
        raise AssertionError("a front has submitted commands to a follower")

    def catch_up(self) -> None:
        behind, self.behind[:] = list(self.behind), []
        for done in behind:
            done()
        self.settle()


@pytest.fixture
def follower() -> Iterator[Follower]:
    made = Follower()
    yield made
    made.end()


def lookup(topic: str = "persistent://public/default/t") -> pb.CommandLookupTopic:
    return pb.CommandLookupTopic(topic=topic, request_id=7)


def metadata(**more: Any) -> pb.CommandPartitionedTopicMetadata:
    return pb.CommandPartitionedTopicMetadata(topic="persistent://public/default/t", request_id=7, **more)


def test_a_look_up_names_the_leader(follower: Follower) -> None:
    client = follower.connect()
    found = client.ask(lookup())
    assert (found.response, found.broker_service_url) == (found.Connect, "pulsar://leader:6650")
    follower.cluster.leader = None
    assert client.ask(lookup()).error == pb.ServerError.ServiceNotReady


def test_the_leader_is_found_by_its_doors_of_the_same_names() -> None:
    def door(front: str, name: str, security: TransportSecurity = TransportSecurity.PLAINTEXT) -> Door:
        return Door(front=front, name=name, endpoint=Endpoint("", 1), security=security)

    addresses = Addresses(
        broker=door("pulsar", "PULSAR"),
        broker_tls=door("pulsar", "OTHER", TransportSecurity.TLS),
        web=door("web", "WEB"),
    )
    assert addresses.urls_of(LEADER) == Urls(broker="pulsar://leader:6650", web="http://leader:8080")


def test_what_is_asked_about_topics_waits_until_the_follower_has_caught_up(follower: Follower) -> None:
    client = follower.connect()
    client.send(metadata(metadata_auto_creation_enabled=False))
    follower.settle()
    assert not client.answers()
    follower.catch_up()
    [answer] = client.answers()
    assert answer.error == pb.ServerError.TopicNotFound


@pytest.mark.parametrize(("partitions", "error"), [(1, 0), (3, pb.ServerError.ServiceNotReady)])
def test_a_follower_leaves_it_to_the_leader_to_create_a_topic(partitions: int, error: int) -> None:
    follower = Follower(num_partitions=partitions)
    client = follower.connect()
    client.send(metadata(metadata_auto_creation_enabled=True))
    follower.settle()
    follower.catch_up()
    [answer] = client.answers()
    assert (answer.error, answer.partitions) == (error, 0)
    assert follower.engine.advice.partition_count("t") == 0
    follower.end()


def filled(kind: Any) -> Any:
    """Return a message with what it requires, and with the names that its handler reads."""
    message = GetMessageClass(kind)()
    for each in kind.fields:
        if each.name in ("topic", "namespace"):
            setattr(message, each.name, "public/default")
        elif not each.is_required:
            continue
        elif each.message_type is not None:
            getattr(message, each.name).CopyFrom(filled(each.message_type))
        elif each.enum_type is not None:
            setattr(message, each.name, each.enum_type.values[0].number)
        else:
            setattr(message, each.name, {each.TYPE_STRING: "x", each.TYPE_BYTES: b"x"}.get(each.type, 1))
    return message


@pytest.mark.parametrize("number", sorted(HANDLERS), ids=pb.BaseCommand.Type.Name)
def test_every_command_is_answered_without_a_decision(number: int, follower: Follower) -> None:
    if number in (pb.BaseCommand.CONNECT, pb.BaseCommand.AUTH_RESPONSE):
        assert HANDLERS[number].at_follower is SERVES
        return
    command = filled(pb.BaseCommand.DESCRIPTOR.fields_by_number[number].message_type)
    client = follower.connect()
    if number == pb.BaseCommand.SEND:
        client.send_bytes(send_frame(b"v"))
    else:
        client.send(command)
    follower.settle()
    follower.catch_up()
    answers, declared = client.answers(), HANDLERS[number].at_follower
    if declared is NOT_OPEN or number == pb.BaseCommand.PONG:
        assert not answers
    elif declared.error is not None:
        [answer] = answers
        assert declared.error in (getattr(answer, "error", None), getattr(answer, "error_code", None))
    else:
        assert len(answers) == 1


def test_what_is_open_goes_on_at_the_new_leader() -> None:
    broker = Broker()
    client = broker.connect()
    client.ask(pb.CommandProducer(topic="t", producer_id=3, request_id=1))
    client.send(
        pb.CommandSubscribe(
            topic="t", subscription="s", sub_type=pb.CommandSubscribe.Shared, consumer_id=4, request_id=2
        )
    )
    broker.settle()
    client.answers()
    broker.context.cluster = Known()
    client.connection.hand_over()
    told = [each for each in client.answers() if hasattr(each, "assigned_broker_service_url")]
    assert told == [
        pb.CommandCloseProducer(
            producer_id=3, request_id=NO_REQUEST, assigned_broker_service_url="pulsar://leader:6650"
        ),
        pb.CommandCloseConsumer(
            consumer_id=4, request_id=NO_REQUEST, assigned_broker_service_url="pulsar://leader:6650"
        ),
    ]
    assert client.connection.has_ended
    broker.end()


def test_a_clean_stop_closes_as_ever() -> None:
    broker = Broker()
    client = broker.connect()
    client.ask(pb.CommandProducer(topic="t", producer_id=3, request_id=1))
    client.connection.hand_over()
    assert not client.answers()
    broker.end()
