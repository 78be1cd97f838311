"""The broker's time: what time-outs, retention and timestamps make of it when a test moves it."""

import math

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

import exacta
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.server.listeners import parse_endpoint
from tests.kafka.wire import Wire


def servers(broker: exacta.Broker) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}


def begun(broker: exacta.Broker, topic: str) -> Producer:
    """Return a producer with an open transaction of one record; its time-out is a minute."""
    producer = Producer({**servers(broker), "transactional.id": "orders-1"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"v")
    assert producer.flush(30) == 0
    return producer


def test_a_transaction_times_out_when_its_time_has_come_and_not_before() -> None:
    with exacta.Broker() as broker:
        producer = begun(broker, "t")
        broker.clock.advance(seconds=59)
        assert [each.fate for each in broker.records("t", "uncommitted")] == ["open"]
        broker.clock.advance(seconds=1)
        assert [each.fate for each in broker.records("t", "uncommitted")] == ["aborted"]
        assert [each.cause for each in broker.explain("orders-1").incidents][-1] == "time-out"
        with pytest.raises(KafkaException):
            producer.commit_transaction(30)


def test_a_member_that_is_silent_is_thrown_out() -> None:
    with exacta.Broker() as broker:
        broker.create_topic("t", 1)
        given: list[str] = []
        settings = {**servers(broker), "group.id": "g", "heartbeat.interval.ms": 30_000, "session.timeout.ms": 100_000}
        first = Consumer(settings)
        first.subscribe(["t"], on_assign=lambda *_: given.append("first"))
        while not given:
            first.poll(0.1)
        broker.clock.advance(seconds=100)
        second = Consumer(settings)
        second.subscribe(["t"], on_assign=lambda *_: given.append("second"))
        while given != ["first", "second"]:  # the first one is not polled: the group does not wait for it
            second.poll(0.1)
        first.close()
        second.close()


def test_old_records_go_after_their_retention() -> None:
    with exacta.Broker() as broker:
        broker.create_topic("t", 1, retention_ms=3_600_000)
        producer = Producer(servers(broker))
        producer.produce("t", b"old")
        assert producer.flush(30) == 0
        broker.clock.advance(minutes=50)
        assert [each.value for each in broker.records("t")] == [b"old"]
        broker.clock.advance(minutes=20)
        assert broker.records("t") == []


def test_the_brokers_timestamps_are_of_its_time() -> None:
    with exacta.Broker() as broker, broker.clock.frozen():
        broker.create_topic("t", 1, message_timestamp_type="LogAppendTime")
        producer = Producer(servers(broker))
        for _ in range(2):
            producer.produce("t", b"v")
            assert producer.flush(30) == 0
            broker.clock.advance(days=1, hours=1, minutes=1, seconds=1, ms=1)
        first, second = broker.records("t")
        assert second.timestamp_ms - first.timestamp_ms == 90_061_001


def test_a_transaction_goes_on_after_time_has_stood_still() -> None:
    with exacta.Broker() as broker:

        def is_frozen() -> bool:
            return broker.clock.is_frozen

        producer = begun(broker, "t")
        broker.clock.advance(seconds=59)
        with broker.clock.frozen():
            assert is_frozen()
            broker.clock.freeze()
            assert is_frozen()
        assert not is_frozen()
        producer.commit_transaction(30)


def test_a_reader_does_not_wait_longer_while_time_stands_still() -> None:
    """Its next request may be for another partition: one fetch at a time is on its way."""
    with exacta.Broker() as broker, broker.clock.frozen():
        broker.create_topic("t", 1)
        endpoint = parse_endpoint(broker.bootstrap_servers)
        wire = Wire((endpoint.host, endpoint.port))
        wanted = FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1)])
        with wire.socket:
            answer = wire.ask(FetchRequest(topics=[wanted], min_bytes=1, max_wait_ms=20), 11)
        assert not answer.responses[0].partitions[0].records


def test_a_transactional_id_that_was_idle_for_a_week_is_forgotten() -> None:
    with exacta.Broker() as broker:
        begun(broker, "t").commit_transaction(30)
        broker.clock.advance(days=6)
        assert broker.explain("orders-1").state
        broker.clock.advance(days=1, hours=1)
        assert not broker.explain("orders-1").state


def test_a_broker_that_was_down_for_long_finds_that_the_time_has_passed() -> None:
    with exacta.Broker() as broker:
        begun(broker, "t")
        broker.stop()
        broker.clock.advance(minutes=15)
        broker.start()
        broker.clock.advance()
        assert [each.fate for each in broker.records("t", "uncommitted")] == ["aborted"]


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="cannot go back, here by 60 s"):
        exacta.Broker().clock.advance(minutes=-1)


@pytest.mark.parametrize("days", [math.nan, math.inf, 1e9])
def test_time_does_not_go_further_than_timestamps(days: float) -> None:
    with exacta.Broker() as broker, pytest.raises(ValueError, match=r"cannot be moved on by [\w.+]+ s"):
        broker.clock.advance(days=days)


def test_a_broker_that_crashes_in_a_move_does_what_is_due_when_it_is_back() -> None:
    with exacta.Broker() as broker:
        begun(broker, "t")
        broker.faults.crash_at_next_sync()
        broker.clock.advance(minutes=15)
        assert [each.fate for each in broker.records("t", "uncommitted")] == ["aborted"]


def test_a_move_that_fills_the_disk_counts_for_the_next_start() -> None:
    with exacta.Broker() as broker:
        begun(broker, "t")
        broker.clock.freeze()
        broker.faults.full_disk()
        broker.clock.advance(minutes=15)
        broker.wait_until_stopped()
        broker.clock.resume()
        broker.start()
        broker.clock.advance()
        assert [each.fate for each in broker.records("t", "uncommitted")] == ["aborted"]
