"""Tests of the service, with a real broker, and with a commit whose answer is lost while the broker crashes."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

import exacta
from examples.invoices.service import Service

ORDERS = [{"number": number, "items": {"apples": number, "pears": 1}} for number in range(1, 6)]
TOTALS = [(1, 7), (2, 10), (3, 13), (4, 16), (5, 19)]


@pytest.fixture
def service(exacta_broker: exacta.Broker, exacta_topic: str) -> Iterator[Service]:
    producer = Producer({"bootstrap.servers": exacta_broker.bootstrap_servers})
    for order in ORDERS:
        producer.produce(exacta_topic, json.dumps(order))
    producer.flush()
    exacta_broker.create_topic(f"{exacta_topic}-invoices", 1)
    service = Service(exacta_broker.bootstrap_servers, "1", exacta_topic, f"{exacta_topic}-invoices")
    yield service
    service.consumer.close()


def totals(broker: exacta.Broker, service: Service) -> list[tuple[int, int]]:
    invoices = [json.loads(record.value or b"") for record in broker.records(service.invoices)]
    return sorted((each["order"], each["total"]) for each in invoices)


def work(broker: exacta.Broker, service: Service) -> None:
    while len(totals(broker, service)) < len(ORDERS):
        service.step()


def test_each_order_has_its_invoice(exacta_broker: exacta.Broker, service: Service) -> None:
    work(exacta_broker, service)
    assert totals(exacta_broker, service) == TOTALS


def test_a_crash_of_the_broker_in_the_commit(exacta_broker: exacta.Broker, service: Service) -> None:
    exacta_broker.faults.drop_answer("EndTxn", then=lambda: exacta_broker.restart(clean=False))
    work(exacta_broker, service)
    service.step(0.2)  # nothing is left that comes twice
    assert totals(exacta_broker, service) == TOTALS
