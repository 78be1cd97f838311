"""Several doors for Kafka's clients: each tells its own address, whichever request asks for one."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from exacta.protocol.kafka.messages import k03_metadata, k10_find_coordinator, k60_describe_cluster
from exacta.protocol.kafka.schema import Message
from tests.kafka.wire import Wire
from tests.server.test_server import Process

ANSWER_SECONDS = 20.0
LISTENERS = "listeners=IN://127.0.0.1:0,OUT://127.0.0.1:0\nlistener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT\n"
ADVERTISED = "advertised.listeners=IN://127.0.0.1:0,OUT://localhost:0\n"
"""Port 0 stands for the port that is listened on; a client tells the two doors apart by the host, too."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    file = tmp_path / "server.properties"
    file.write_text(LISTENERS + ADVERTISED)
    server = Process(tmp_path / "data", "--config", str(file), listen=None)
    try:
        yield server
    finally:
        server.clean_up()


def ports(server: Process) -> tuple[int, int]:
    """Return the ports of both doors, as the server has said them."""
    assert server.process.stdout is not None
    said = server.process.stdout.readline()
    assert said.startswith("exacta: listening for Kafka's clients at the door OUT on 127.0.0.1:")
    return server.address[1], int(said.rpartition(":")[2])


def test_real_clients_at_two_doors_are_each_told_the_address_of_theirs(server: Process) -> None:
    inside, outside = ports(server)
    assert inside != outside
    for told in (f"127.0.0.1:{inside}", f"localhost:{outside}"):
        at_the_door = {"bootstrap.servers": told}
        admin = AdminClient(at_the_door)
        [broker] = admin.list_topics(timeout=ANSWER_SECONDS).brokers.values()
        assert f"{broker.host}:{broker.port}" == told
        [node] = admin.describe_cluster(request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS).nodes
        assert f"{node.host}:{node.port}" == told
        producer = Producer(at_the_door)
        producer.produce("orders", told.encode())
        assert producer.flush(ANSWER_SECONDS) == 0
    for told in (f"127.0.0.1:{inside}", f"localhost:{outside}"):
        consumer = Consumer({"bootstrap.servers": told, "group.id": told, "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        records = [record for _ in range(2) for record in consumer.consume(1, ANSWER_SECONDS)]
        assert [each.value() for each in records] == [f"127.0.0.1:{inside}".encode(), f"localhost:{outside}".encode()]
        admin = AdminClient({"bootstrap.servers": told})
        described = admin.describe_consumer_groups([told])[told].result(ANSWER_SECONDS)
        assert f"{described.coordinator.host}:{described.coordinator.port}" == told
        consumer.close()
    assert server.end(signal.SIGTERM)[0] == 0


QUESTIONS = [
    (k03_metadata.MetadataRequest(topics=[]), 12, "brokers"),
    (k10_find_coordinator.FindCoordinatorRequest(coordinator_keys=["g"]), 4, "coordinators"),
    (k60_describe_cluster.DescribeClusterRequest(), 1, "brokers"),
]


@pytest.mark.parametrize(("question", "version", "field"), QUESTIONS, ids=["Metadata", "FindCoordinator", "Cluster"])
def test_each_request_that_tells_an_address_tells_that_of_the_door(
    server: Process, question: Message, version: int, field: str
) -> None:
    inside, outside = ports(server)
    for port, told in ((inside, ("127.0.0.1", inside)), (outside, ("localhost", outside))):
        wire = Wire(("127.0.0.1", port))
        [found] = getattr(wire.ask(question, version), field)
        assert (found.host, found.port) == told
        wire.socket.close()


def test_a_door_whose_port_is_taken_ends_the_start_before_the_data_is_touched(tmp_path: Path, server: Process) -> None:
    inside, _ = ports(server)
    file = tmp_path / "second.properties"
    file.write_text(LISTENERS.replace("OUT://127.0.0.1:0", f"OUT://127.0.0.1:{inside}"))
    second = Process(tmp_path / "other", "--config", str(file), listen=None)
    code, errors = second.end()
    assert (code, errors) == (1, f"exacta: cannot listen on 127.0.0.1:{inside}: address already in use\n")
    assert not (tmp_path / "other").exists()
    second.clean_up()
