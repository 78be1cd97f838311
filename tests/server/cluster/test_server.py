"""Several brokers over one log, with real clients: the leader is killed, stops, moves, is cut off, or loses commits."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from exacta.protocol.kafka.messages import k01_fetch as m
from exacta.server.cluster import nodes
from exacta.server.cluster import server as cluster_server
from exacta.server.cluster.roles import BrokerRole
from exacta.server.errors import ServerError
from tests.kafka.wire import Wire, values_in
from tests.server.cluster.brokers import Brokers

FLUSH_S = 30


@pytest.fixture
def brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Brokers]:
    monkeypatch.setattr(cluster_server, "REST_S", 0.05)
    with Brokers(tmp_path) as found:
        yield found


class Writer:
    """Write numbers to one topic; all that was acknowledged is in `acknowledged`."""

    def __init__(self, servers: str, **options: Any) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **options})
        self._numbers = itertools.count()
        self.acknowledged: list[str] = []

    def write(self, count: int = 10) -> None:
        for number in itertools.islice(self._numbers, count):
            self._producer.produce("log", str(number), on_delivery=self._told)
        assert self._producer.flush(FLUSH_S) == 0

    def transaction(self, count: int = 10) -> None:
        self._producer.begin_transaction()
        self.write(count)
        self._producer.commit_transaction(FLUSH_S)

    def init_transactions(self) -> None:
        self._producer.init_transactions(FLUSH_S)

    def _told(self, error: object, message: Any) -> None:
        assert error is None, error
        self.acknowledged.append(message.value().decode())


def values(servers: str, count: int) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"readers of {count}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["log"])
    found: list[str] = []
    try:
        while len(found) < count:
            messages = consumer.consume(count, timeout=FLUSH_S)
            assert messages, found
            for message in messages:
                assert message.error() is None, message.error()
                found.append(message.value().decode())
        return found
    finally:
        consumer.close()


def two(brokers: Brokers) -> tuple[int, int]:
    """Start two brokers, and return the leader and the follower."""
    brokers.start(1)
    leader = brokers.leader()
    brokers.start(2)
    [follower] = brokers.followers()
    return leader, follower


def both(brokers: Brokers) -> str:
    return ",".join(brokers.address(each) for each in (1, 2))


def test_a_leader_is_killed_under_a_producer_and_the_follower_goes_on(brokers: Brokers) -> None:
    leader, follower = two(brokers)
    writer = Writer(brokers.address(follower))  # it begins at a follower
    writer.write()
    brokers.kill(leader)
    writer.write()
    assert brokers.leader() == follower
    assert values(brokers.address(follower), 20) == writer.acknowledged == [str(number) for number in range(20)]


def test_every_broker_of_three_leads_in_turn_and_a_killed_one_comes_back_as_a_follower(brokers: Brokers) -> None:
    for node_id in (1, 2, 3):
        brokers.start(node_id)
    leader = brokers.leader()
    writer = Writer(",".join(brokers.address(each) for each in (1, 2, 3)))
    led = {leader}
    for _ in range(3):
        writer.write()
        brokers.kill(leader)
        led.add(brokers.leader())
        brokers.start(leader)
        leader = brokers.leader()
        brokers.followers()
    writer.write()
    assert len(led) > 1
    for node_id in (1, 2, 3):
        assert values(brokers.address(node_id), 40) == writer.acknowledged


def test_a_clean_stop_lets_another_lead_and_transactions_go_on(brokers: Brokers) -> None:
    leader, follower = two(brokers)
    writer = Writer(both(brokers), **{"transactional.id": "writer"})
    writer.init_transactions()
    writer.transaction()
    brokers.stop(leader)
    assert brokers.leader() == follower
    writer.transaction()
    brokers.start(leader)
    assert values(brokers.address(leader), 20) == writer.acknowledged


@pytest.mark.parametrize("stops", ["leader", "follower"])
def test_an_answer_that_a_client_takes_slowly_is_sent_before_a_clean_stop(brokers: Brokers, stops: str) -> None:
    leader, follower = two(brokers)
    producer = Producer({"bootstrap.servers": both(brokers)})
    values = [bytes(900_000)] * 16  # more than the buffers of a connection hold
    for value in values:
        producer.produce("log", value)
    assert producer.flush(FLUSH_S) == 0
    brokers.until_all_have_followed()
    server = brokers.servers[leader if stops == "leader" else follower]
    host, port = brokers.address(server.cluster.node_id).split(":")
    partition = m.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 28)
    topics = [m.FetchTopic(topic="log", partitions=[partition])]
    wanted = m.FetchRequest(topics=topics, max_wait_ms=0, min_bytes=1, max_bytes=1 << 28)
    wire = Wire((host, int(port)))
    with wire.socket, ThreadPoolExecutor() as pool:
        wire.send(wanted, 12)
        brokers.until(lambda: server.engine.counts.read_bytes["log"] > 0, "it is not answered")
        stopping = pool.submit(brokers.stop, server.cluster.node_id)
        brokers.until(lambda: server.role is BrokerRole.ENDED, "it does not stop")
        [told] = wire.receive(wanted, 12)[1].responses[0].partitions
        stopping.result()
    assert values_in(told.records) == values


def test_a_leader_that_is_asked_to_move_follows_whom_it_let_lead(brokers: Brokers) -> None:
    leader, follower = two(brokers)
    writer = Writer(both(brokers))
    writer.write()
    brokers.on_loop(brokers.servers[follower].move)
    assert brokers.leader() == leader
    brokers.on_loop(brokers.servers[leader].move)
    brokers.until(lambda: brokers.servers[follower].role is BrokerRole.LEADING, "the follower does not lead")
    assert brokers.followers() == [leader]
    writer.write()
    assert values(brokers.address(leader), 20) == writer.acknowledged
    brokers.kill(follower)
    assert brokers.leader() == leader


def test_a_leader_alone_that_is_asked_to_move_leads_again(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_server, "YIELD_S", 0.05)
    brokers.start(1)
    writer = Writer(brokers.address(brokers.leader()))
    writer.write()
    brokers.on_loop(brokers.servers[1].move)
    writer.write()
    assert brokers.leader() == 1
    assert values(brokers.address(1), 20) == writer.acknowledged


def test_a_leader_that_is_cut_off_closes_its_clients_and_follows_when_it_comes_back(brokers: Brokers) -> None:
    leader, follower = two(brokers)
    writer = Writer(both(brokers))  # a client that knows one broker only goes there again and again
    writer.write()
    brokers.on_loop(brokers.wires[leader].cut)
    writer.write()
    assert brokers.on_loop(lambda: brokers.servers[follower].role) is BrokerRole.LEADING
    assert not brokers.on_loop(lambda: brokers.servers[leader].cluster.in_touch)
    brokers.on_loop(brokers.wires[leader].mend)
    assert brokers.followers() == [leader]
    assert values(brokers.address(leader), 20) == writer.acknowledged


def test_a_database_that_restarts_costs_the_lead_and_nothing_else(brokers: Brokers) -> None:
    two(brokers)
    writer = Writer(both(brokers))
    writer.write()
    brokers.on_loop(brokers.database.restart)
    writer.write()
    brokers.followers()
    assert values(brokers.address(1), 20) == writer.acknowledged
    assert not any(each.failure.done() for each in brokers.servers.values())


def test_a_failover_that_has_lost_what_was_acknowledged_is_told_and_nobody_goes_on(brokers: Brokers) -> None:
    two(brokers)
    Writer(brokers.address(1)).write()
    brokers.until_all_have_followed()
    brokers.on_loop(lambda: brokers.database.fail_over(lost=3))
    brokers.until(lambda: all(each.failure.done() for each in brokers.servers.values()), "they go on")
    for each in brokers.servers.values():
        assert "durable" in str(each.failure.result())


def test_a_second_broker_with_a_node_id_is_refused(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "ENTRY_TICKS", 2)
    brokers.start(1)
    brokers.leader()
    with pytest.raises(ServerError, match="another broker has the node id 1: give each broker of a cluster its own"):
        brokers.start(1, is_second=True)
    writer = Writer(brokers.address(1))
    writer.write()


def test_the_option_says_how_large_a_segment_of_the_tail_grows(brokers: Brokers) -> None:
    options: dict[str, Any] = {"log.segment.bytes": 1 << 20}
    server = brokers.start(1, **options)
    producer = Producer({"bootstrap.servers": brokers.address(1), "linger.ms": 0})
    for _ in range(3):
        producer.produce("log", bytes(600_000))
        assert producer.flush(FLUSH_S) == 0
    brokers.until(lambda: server.figures.tail_bytes < 1 << 20, "nothing was offloaded")


@pytest.mark.parametrize(
    ("founder", "other", "told"),
    [
        ("", "s3://bucket/log", "needs no --objects, since they lie in PostgreSQL"),
        ("s3://bucket/log", "", "needs --objects s3://bucket/log"),
        ("s3://bucket/log", "s3://bucket/other", "needs --objects s3://bucket/log"),
    ],
)
def test_a_broker_with_another_place_for_objects_is_refused(
    brokers: Brokers, founder: str, other: str, told: str
) -> None:
    brokers.start(1, objects=founder)
    with pytest.raises(ServerError, match=f"the objects of this cluster lie elsewhere: each of its brokers {told}"):
        brokers.start(2, objects=other)


def test_how_a_broker_reaches_the_objects_is_its_own_affair(brokers: Brokers) -> None:
    brokers.start(1, objects="s3://bucket/log")
    brokers.start(2, objects="s3://bucket/log/?region=eu-central-1")


def test_a_log_that_nobody_can_reach_is_a_start_that_fails(brokers: Brokers) -> None:
    brokers.is_cut_off = True
    with pytest.raises(ServerError):
        brokers.start(1)


def test_a_defect_in_the_beginning_ends_the_start(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*arguments: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(cluster_server, "open_shared", fail)
    with pytest.raises(ServerError, match=r"^ZeroDivisionError\('a defect'\)$"):
        brokers.start(1)
