"""Producers: names, what they go on from, who may join whom, and what is not served."""

from typing import Any

import pulsar
import pytest

import exacta
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.pulsar import producers
from tests.kafka.access_rules import Rules
from tests.pulsar.by_hand import Broker, Client
from tests.pulsar.wire import Wire, client


@pytest.fixture
def other(broker: exacta.Broker) -> Any:
    """A second connection."""
    opened = Wire(broker.pulsar_url)
    yield opened
    opened.close()


def test_names_that_are_made_up_differ(wire: Wire, other: Wire) -> None:
    names = {each.open_producer("t", number).producer_name for each in (wire, other) for number in (0, 1)}
    assert len(names) == 4
    assert all(names)


def test_a_named_producer_goes_on_after_its_last_sequence(wire: Wire) -> None:
    assert wire.open_producer("t", name="p").last_sequence_id == -1
    wire.produce(b"a", b"b", b"c", sequence=4)
    assert isinstance(wire.ask(pb.CommandCloseProducer(producer_id=0, request_id=9)), pb.CommandSuccess)
    assert wire.open_producer("t", name="p").last_sequence_id == 6
    assert wire.open_producer("u", 1, name="p").last_sequence_id == -1


def test_a_name_is_free_when_its_connection_is_gone(broker: exacta.Broker, wire: Wire, other: Wire) -> None:
    assert isinstance(wire.open_producer("t", name="p"), pb.CommandProducerSuccess)
    refused = other.open_producer("t", name="p")
    assert (type(refused), refused.error) == (pb.CommandError, pb.ServerError.ProducerBusy)
    assert "'p'" in refused.message
    assert isinstance(other.open_producer("u", name="p"), pb.CommandProducerSuccess)
    assert isinstance(wire.ask(pb.CommandCloseProducer(producer_id=0, request_id=9)), pb.CommandSuccess)
    assert isinstance(other.open_producer("t", 1, name="p"), pb.CommandProducerSuccess)


def test_a_client_that_comes_back_takes_its_made_up_name_over(wire: Wire, other: Wire) -> None:
    name = wire.open_producer("t").producer_name
    refused = other.open_producer("t", name=name, epoch=0, user_provided_producer_name=False)
    assert refused.error == pb.ServerError.ProducerBusy
    taken = other.open_producer("t", name=name, epoch=1, user_provided_producer_name=False)
    assert taken.producer_name == name
    closed = wire.receive()
    assert (type(closed), closed.producer_id) == (pb.CommandCloseProducer, 0)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (
            {"schema": pb.Schema(name="s", schema_data=b"", type=pb.Schema.Avro)},
            pb.ServerError.IncompatibleSchema,
        ),
        ({"topic_epoch": 2**62 + 1}, pb.ServerError.NotAllowedError),
        ({"initial_subscription_name": "x" * 5000}, pb.ServerError.NotAllowedError),
        ({"name": "x" * 513}, pb.ServerError.NotAllowedError),
        ({"topic": "t-partition-1"}, pb.ServerError.TopicNotFound),
        ({"topic": "__consumer_offsets"}, pb.ServerError.NotAllowedError),
    ],
)
def test_what_is_not_served_is_refused_in_words(wire: Wire, fields: dict[str, Any], error: int) -> None:
    assert isinstance(wire.open_producer("t"), pb.CommandProducerSuccess)
    refused = wire.open_producer(**dict[str, Any](topic="t", number=1) | fields)
    assert (type(refused), refused.error) == (pb.CommandError, error)
    assert refused.message
    assert isinstance(wire.ask(pb.CommandPing()), pb.CommandPong)


def test_the_claim_that_messages_are_encrypted_changes_nothing(wire: Wire) -> None:
    assert isinstance(wire.open_producer("t", encrypted=True), pb.CommandProducerSuccess)
    assert isinstance(wire.produce(b"secret"), pb.CommandSendReceipt)


def test_an_initial_subscription_gets_all_messages(broker: exacta.Broker) -> None:
    """Clients ask for it when they create the topics of dead letters and of retries."""
    wire = Wire(broker.pulsar_url)
    wire.open_producer("t")
    wire.produce(b"before")
    for number in (1, 2):  # the second one finds it
        assert isinstance(wire.open_producer("t", number, initial_subscription_name="s"), pb.CommandProducerSuccess)
    wire.close()
    with client(broker.pulsar_url) as opened:
        consumer = opened.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Failover)
        assert consumer.receive(10_000).data() == b"before", "a subscription of the consumer's would begin later"


def test_an_initial_subscription_that_has_consumers_is_left_alone(wire: Wire, other: Wire) -> None:
    assert isinstance(other.subscribe("t"), pb.CommandSuccess)
    assert isinstance(wire.open_producer("t", initial_subscription_name="s"), pb.CommandProducerSuccess)
    assert isinstance(other.ask(pb.CommandPing()), pb.CommandPong)


def test_an_initial_subscription_needs_the_right_to_read() -> None:
    broker = Broker(Rules(lambda operation, resource: (operation, resource.name) != (Operation.READ, "t")))
    for name, error in (("", None), ("s", pb.ServerError.AuthorizationError)):
        command = pb.CommandProducer(topic="t", producer_id=0, request_id=1, initial_subscription_name=name)
        assert getattr(broker.connect().ask(command), "error", None) == error
    broker.end()


def test_all_connections_together_have_so_many_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "MOST_PRODUCERS_IN_ALL", 8)
    here = Broker()
    clients = [here.connect() for _ in range(2)]
    mine = here.engine.owner_of
    here.engine.owner_of = lambda host: ""

    def opened(client: Client, number: int) -> bool:
        command = pb.CommandProducer(topic=f"t{number}", producer_id=number, request_id=number)
        client.send(command)
        here.settle()
        return not any(isinstance(answer, pb.CommandError) for answer in client.answers())

    assert [opened(clients[number % 2], number) for number in range(9)] == [True] * 8 + [False]
    clients[0].ask(pb.CommandCloseProducer(producer_id=0, request_id=1))
    assert opened(clients[1], 10)
    clients[0].ask(pb.CommandCloseProducer(producer_id=2, request_id=1))
    here.engine.owner_of = mine
    assert opened(clients[1], 11), "what was there belongs to nobody, and one is no more than a quarter"
    here.end()
    assert here.shared.producers._usage.total == 0
