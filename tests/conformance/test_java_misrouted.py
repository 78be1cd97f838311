"""The address of our broker is given to another cluster, and Kafka's client for Java writes nothing there (KIP-1242).

Without the check of ApiVersions version 5 it goes on in the other cluster's topic of the same name. `make test-with
WHAT=java` runs this: no other client says which cluster and node it means. (A consumer of 4.4.0 remembers the leaders
of its partitions, and goes to them without saying so after a refusal, so that it may read of the other cluster.)
"""

import asyncio
import os
from collections.abc import Iterator

import pytest

from exacta.testing.proxy import Proxy
from tests.conformance.brokers import HOST, ON_KAFKA, BrokerProcess, broker_process
from tests.conformance.clients import Client
from tests.conformance.clients.interface import CALL_TIMEOUT_S
from tests.conformance.scenario import Scenario, wait_until

if not os.environ.get("EXACTA_TEST_JAVA"):
    pytest.skip("set EXACTA_TEST_JAVA to run Kafka's client for Java", allow_module_level=True)

ATTEMPTS = 3
ANOTHER_NODE = ("node.id=2",) if ON_KAFKA else ()
"""All nodes of Apache Kafka that tests start say that they are of one cluster."""


class Door(Proxy):
    """An address, and how often clients have come to it since it was given to somebody else."""

    came = 0

    def give_to(self, broker: BrokerProcess) -> None:
        """Lead new connections to this broker."""
        self.upstream, self.came = (HOST, broker.port), 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came += 1
        await super()._serve(reader, writer)


@pytest.fixture
def door() -> Iterator[Door]:
    """The address that our broker advertises."""
    with Door() as made:
        yield made


@pytest.fixture
def ours(tmp_path_factory: pytest.TempPathFactory, door: Door) -> Iterator[BrokerProcess]:
    """Our broker; its own address, which clients begin with, always leads to it."""
    with broker_process(tmp_path_factory.mktemp("ours"), advertised_port=door.port) as process:
        door.give_to(process)
        yield process


@pytest.fixture
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The broker of another cluster."""
    with broker_process(tmp_path_factory.mktemp("theirs"), settings=ANOTHER_NODE) as process:
        yield process


def test_nothing_is_written_into_another_cluster(
    client: Client, door: Door, ours: BrokerProcess, theirs: BrokerProcess
) -> None:
    scenario, foreign = Scenario(client, ours.bootstrap, "x"), Scenario(client, theirs.bootstrap, "x")
    partition = scenario.partition()
    assert foreign.partition() == partition
    producer = scenario.producer()
    producer.send(partition.topic, b"before", partition=partition.partition)
    producer.flush()
    ours.kill()
    door.give_to(theirs)
    ours.start()
    sent = producer.send(partition.topic, b"after", partition=partition.partition)
    wait_until(lambda: door.came >= ATTEMPTS, "attempts at the address that is another cluster's now")
    assert not sent.done()
    door.give_to(ours)
    producer.flush()
    assert sent.result(CALL_TIMEOUT_S) == 1
    assert scenario.read(partition) == [b"before", b"after"]
    assert foreign.high_watermark(partition) == 0
