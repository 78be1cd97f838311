"""Two and three brokers over one log, with real clients: beginning anywhere, and a leader that is killed, or stops."""

from pathlib import Path

from confluent_kafka import Consumer, Producer

from tests.server.cluster.brokers import Brokers


def test_a_leader_is_killed_under_a_producer_and_the_follower_goes_on(tmp_path: Path) -> None:
    with Brokers(tmp_path) as brokers:
        brokers.start(1)
        leader = brokers.leader()
        brokers.start(2)
        [follower] = brokers.followers()
        producer = Producer({"bootstrap.servers": brokers.address(follower), "enable.idempotence": True})
        told: list[object] = []
        for number in range(10):
            producer.produce("log", str(number), on_delivery=lambda error, message: told.append(error))
        assert producer.flush(20) == 0
        brokers.kill(leader)
        for number in range(10, 20):
            producer.produce("log", str(number), on_delivery=lambda error, message: told.append(error))
        assert producer.flush(20) == 0
        assert told == [None] * 20
        assert brokers.leader() == follower
        assert values(brokers.address(follower), 20) == [str(number) for number in range(20)]


def values(servers: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["log"])
    found: list[str] = []
    try:
        while len(found) < count:
            for message in consumer.consume(count, timeout=20) or [None]:
                assert message is not None, found
                assert message.error() is None, message.error()
                found.append(message.value().decode())
        return found
    finally:
        consumer.close()
