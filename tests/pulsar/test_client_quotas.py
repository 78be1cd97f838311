"""Pulsar clients are held to quotas by being muted alone; the name of a producer or a consumer counts as client id."""

from typing import Any

import pytest

from exacta.core.commands import AlterClientQuotas
from exacta.core.values.quotas import EntityType, QuotaAlteration, QuotaKey, entity_of
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, Client, broker_by_hand, send_frame

broker = pytest.fixture(broker_by_hand)
KEY = QuotaKey.PRODUCER_BYTE_RATE


def limit(broker: Broker, client_id: str | None, **quotas: float) -> None:
    entity = entity_of({EntityType.CLIENT_ID: client_id} if client_id else {EntityType.USER: "ANONYMOUS"})
    values: dict[QuotaKey, float | None] = {QuotaKey(key): value for key, value in quotas.items()}
    command = AlterClientQuotas(alterations=(QuotaAlteration(entity, values),))
    broker.engine.submit((command,), lambda answers: None)
    broker.settle()


def producer(broker: Broker, name: str) -> Client:
    made = broker.connect()
    opened = made.ask(pb.CommandProducer(topic="t", producer_id=0, request_id=1, producer_name=name))
    assert isinstance(opened, pb.CommandProducerSuccess)
    return made


def receipts(client: Client) -> int:
    return sum(isinstance(each, pb.CommandSendReceipt) for each in client.answers())


def test_a_producer_is_muted_by_its_name_and_its_neighbour_is_not(broker: Broker) -> None:
    limit(broker, "p", producer_byte_rate=1_000)
    one, other = producer(broker, "p"), producer(broker, "q")
    size = len(send_frame(b"x" * 3_000))
    for client in (one, other):
        client.send_bytes(b"".join(send_frame(b"x" * 3_000, sequence=number) for number in range(3)))
    broker.settle()
    assert (receipts(one), receipts(other)) == (1, 3)
    broker.pass_time(size - 1_001)
    assert receipts(one) == 0
    broker.pass_time(1)
    assert receipts(one) == 1
    broker.pass_time(size)
    assert receipts(one) == 1


def test_a_muted_connection_is_not_taken_for_one_that_is_not_there(broker: Broker) -> None:
    limit(broker, "p", producer_byte_rate=1)
    one = producer(broker, "p")
    one.send_bytes(send_frame(b"x" * 300))
    broker.settle()
    for _ in range(20):
        broker.pass_time(10_000)
    assert not one.closed
    assert receipts(one) == 1


def subscribed(broker: Broker, name: str, permits: int) -> Client:
    made = broker.connect()
    command = pb.CommandSubscribe(
        topic="t",
        subscription=f"of {name}",
        sub_type=pb.CommandSubscribe.Exclusive,
        consumer_id=0,
        request_id=1,
        consumer_name=name,
        initial_position=pb.CommandSubscribe.Earliest,
    )
    made.ask(command)
    made.send(pb.CommandFlow(consumer_id=0, message_permits=permits))
    broker.settle()
    return made


def pushed(client: Client) -> int:
    return sum(isinstance(each, pb.CommandMessage) for each in client.answers())


def test_a_consumer_is_pushed_what_its_quota_lets_and_its_neighbour_everything(broker: Broker) -> None:
    writer, count, rate = producer(broker, "w"), 400, 10_000
    for number in range(count):
        writer.send_bytes(send_frame(b"x" * 1_000, sequence=number))
    broker.settle()
    limit(broker, "c", consumer_byte_rate=rate)
    one, other = subscribed(broker, "c", 1_000), subscribed(broker, "d", 1_000)
    assert pushed(other) == count
    got: list[int] = []
    for _ in range(30):
        got.append(pushed(one))
        broker.pass_time(1_000)
    within = [1_000 * sum(got[at : at + 10]) for at in range(len(got))]
    assert max(within) <= 1.25 * 10 * rate
    assert 1_000 * sum(got) >= 0.9 * 30 * rate


def test_commands_take_their_share_of_the_loop(broker: Broker) -> None:
    limit(broker, None, request_percentage=1)
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.25
        return now

    broker.context.quotas._processor_clock = clock
    one = broker.connect()
    one.send(*(pb.CommandLookupTopic(topic="persistent://public/default/t", request_id=each) for each in range(3)))
    broker.settle()
    answered: list[Any] = one.answers()
    assert len(answered) == 1
    broker.pass_time(999)
    assert one.answers() == []
    broker.pass_time(1)
    assert len(one.answers()) == 1
