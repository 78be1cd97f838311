"""Producers: names, what they go on from, who may join whom, and what is not served."""

from typing import Any

import pytest

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.wire import Wire


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


def test_exclusive_means_alone(wire: Wire, other: Wire) -> None:
    assert isinstance(wire.open_producer("t"), pb.CommandProducerSuccess)
    exclusive = pb.ProducerAccessMode.Exclusive
    refused = other.open_producer("t", producer_access_mode=exclusive)
    assert refused.error == pb.ServerError.ProducerFenced
    wire.ask(pb.CommandCloseProducer(producer_id=0, request_id=9))
    assert isinstance(other.open_producer("t", producer_access_mode=exclusive), pb.CommandProducerSuccess)
    assert wire.open_producer("t").error == pb.ServerError.ProducerBusy


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"producer_access_mode": pb.ProducerAccessMode.WaitForExclusive}, pb.ServerError.NotAllowedError),
        ({"producer_access_mode": pb.ProducerAccessMode.ExclusiveWithFencing}, pb.ServerError.NotAllowedError),
        ({"encrypted": True}, pb.ServerError.NotAllowedError),
        ({"initial_subscription_name": "s"}, pb.ServerError.NotAllowedError),
        (
            {"schema": pb.Schema(name="s", schema_data=b"", type=pb.Schema.Avro)},
            pb.ServerError.IncompatibleSchema,
        ),
        ({"name": "x" * 513}, pb.ServerError.NotAllowedError),
        ({"topic": "t-partition-1"}, pb.ServerError.TopicNotFound),
        ({"topic": "__consumer_offsets"}, pb.ServerError.NotAllowedError),
    ],
)
def test_what_is_not_served_is_refused_in_words(wire: Wire, fields: dict[str, Any], error: int) -> None:
    assert isinstance(wire.open_producer("t"), pb.CommandProducerSuccess)
    refused = wire.open_producer(**{"topic": "t", "number": 1} | fields)
    assert (type(refused), refused.error) == (pb.CommandError, error)
    assert refused.message
    assert isinstance(wire.ask(pb.CommandPing()), pb.CommandPong)
