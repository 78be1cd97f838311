"""Ending several transactions at once, against a real broker; Apache Kafka can only say that it cannot."""

import pytest

from exacta.client.errors import ConnectionLost, KafkaError, UnsupportedByBroker
from exacta.client.routing import Client
from exacta.client.transaction_set import can_end_at_once, end_transactions_at_once
from exacta.client.transactions import Producer, TopicPartition, end_transaction, init_producer_id
from exacta.protocol.kafka.errors import ErrorCode
from tests.client.test_transactions import taken, written
from tests.spark.clusters import ELSEWHERE, held_back, read_committed

only_here = pytest.mark.skipif(bool(ELSEWHERE), reason="Exacta's own API")


def three(client: Client, topic: str) -> list[Producer]:
    """Three producers that have written to partition 0, which is where one record goes."""
    producers = [taken(client, f"{topic}-{index}") for index in range(3)]
    for producer in producers:
        written(client, producer, topic, producer.transactional_id.encode())
    return producers


def codes(refused: dict[Producer, KafkaError]) -> dict[Producer, int]:
    return {producer: error.code for producer, error in refused.items()}


def test_whether_the_coordinator_can(client, topic):
    producer = taken(client, f"{topic}-a")
    assert can_end_at_once(client, producer) is not bool(ELSEWHERE)
    if ELSEWHERE:
        with pytest.raises(UnsupportedByBroker):
            end_transactions_at_once(client, {producer: ()}, commit=True)


@only_here
def test_all_are_committed_and_a_repeat_changes_nothing(client, bootstrap, topic):
    producers = three(client, topic)
    at = [TopicPartition(topic, 0)]
    for _ in range(2):
        assert end_transactions_at_once(client, dict.fromkeys(producers, at), commit=True) == {}
    assert len(read_committed(bootstrap, topic)) == 3


@only_here
def test_an_answer_that_is_lost_is_asked_for_again(client, bootstrap, topic, monkeypatch):
    producers = three(client, topic)
    lost: list[object] = []
    connection = client.connection

    def losing(*arguments):
        opened = connection(*arguments)
        call = opened.call

        def once(*request, **named):
            answer = call(*request, **named)
            if lost:
                return answer
            lost.append(answer)
            opened.close()
            raise ConnectionLost("a test wants it so")

        opened.call = once
        return opened

    monkeypatch.setattr(client, "connection", losing)
    assert end_transactions_at_once(client, dict.fromkeys(producers, ()), commit=True) == {}
    assert len(lost) == 1
    assert len(read_committed(bootstrap, topic)) == 3


@only_here
def test_what_stands_in_the_way(client, topic):
    producers = three(client, topic)
    end_transaction(client, producers[1], commit=True)
    refused = end_transactions_at_once(client, dict.fromkeys(producers, ()), commit=True)
    assert codes(refused) == {producers[1]: ErrorCode.INVALID_TXN_STATE}
    init_producer_id(client, producers[2].transactional_id, transaction_timeout_ms=60_000)
    refused = end_transactions_at_once(client, dict.fromkeys(producers[::2], ()), commit=True)
    assert codes(refused) == {producers[2]: ErrorCode.PRODUCER_FENCED}
    elsewhere = [TopicPartition(topic, 1)]
    refused = end_transactions_at_once(client, {producers[0]: elsewhere}, commit=True)
    assert codes(refused) == {producers[0]: ErrorCode.INVALID_TXN_STATE}
    assert held_back(client.bootstrap, topic).keys() == {0}
    assert end_transactions_at_once(client, {producers[0]: ()}, commit=False) == {}
    assert held_back(client.bootstrap, topic) == {}


@only_here
def test_too_many(client):
    many = {Producer(str(number), 0, 0): () for number in range(10_001)}
    with pytest.raises(KafkaError) as refused:
        end_transactions_at_once(client, many, commit=True)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
