"""Three nodes of Apache Kafka over SASL_SSL, of which one after the other is killed or stands still during commits.

Needs Java and, the first time, Maven: only where `EXACTA_TEST_CLUSTER` is set. A node may be started by the test and
is ended by it.
"""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from exacta.client.errors import ConnectionLost
from exacta.client.group_offsets import fetch_stable_offsets
from exacta.client.producer import IdempotentProducer
from exacta.client.routing import TRANSACTION, Client, Coordinator, Leader
from exacta.client.security import Cluster as Target
from exacta.client.topics import create_topic
from exacta.client.transactions import CommittedOffset, TopicPartition, commit_offset, end_transaction, init_producer_id
from tests.client.appending import append
from tests.client.secured import Access
from tests.spark.clusters import read_committed

pytestmark = pytest.mark.skipif(
    not os.environ.get("EXACTA_TEST_CLUSTER"), reason="EXACTA_TEST_CLUSTER asks for three nodes of Apache Kafka"
)

TOPIC = "rows"
PARTITIONS = 6
ROWS = 120
NAME = "job-driver"
GROUP = "job-0"
MARKER = TopicPartition(TOPIC, 0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    from benchmarks.kafka.cluster import Cluster
    from benchmarks.kafka.distribution import fetch
    from benchmarks.kafka.node import HOST
    from benchmarks.kafka.security import Secured

    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(folder, fetch(), secured=Secured.at(folder / "secure", HOST)) as running:
        yield running


def a_client(cluster):
    secured = cluster.nodes[1].secured
    access = Access(
        listeners={},
        accounts=dict(secured.accounts),
        ca=str(secured.folder / "ca.pem"),
        client=str(secured.folder / "client.pem"),
    )
    return Client(
        Target(
            bootstrap=cluster.bootstrap_of("SASL_SSL"),
            security=access.security("SASL_SSL", "SCRAM-SHA-512"),
            request_timeout_ms=8_000,
        ),
        call_timeout_ms=90_000,
    )


class Nemesis:
    """Kills the node in charge, or lets it stand still until the cluster has done without it."""

    def __init__(self, cluster):
        self.cluster = cluster
        self._client = a_client(cluster)

    def close(self):
        self._client.close()

    def in_charge(self, of):
        route = Leader(TOPIC, 0) if of == "leader" else Coordinator(TRANSACTION, NAME)
        self._client.forget(route)
        return self._client.resolve(route, self._client.deadline())

    def kill(self, of):
        victim = self.in_charge(of)
        self.cluster.kill(victim)
        self.wait_until_another(of, victim)
        self.cluster.restart(victim)
        self.cluster.wait_until_whole()

    def freeze(self, of):
        victim = self.in_charge(of)
        process = self.cluster.process(victim)
        process.send_signal(signal.SIGSTOP)
        try:
            self.wait_until_another(of, victim)
        finally:
            process.send_signal(signal.SIGCONT)
        self.cluster.wait_until_whole()

    def wait_until_another(self, of, victim):
        for _ in range(100_000):
            with suppress(ConnectionLost):  # nobody is, for now
                if self.in_charge(of) != victim:
                    return
        raise AssertionError(f"node {victim} stays in charge")


def test_every_row_once_while_nodes_are_killed_and_stand_still(cluster):
    with a_client(cluster) as client:
        assert create_topic(client, TOPIC, partitions=PARTITIONS, replication_factor=3)
        init_producer_id(client, NAME, transaction_timeout_ms=60_000)
    nemesis = Nemesis(cluster)
    deeds = [(nemesis.kill, "leader"), (nemesis.kill, "coordinator"), (nemesis.freeze, "leader")]
    deeds.append((nemesis.freeze, "coordinator"))
    batches = 0
    with ThreadPoolExecutor(1) as pool, a_client(cluster) as client:
        for deed, of in deeds:
            ends = batches + 3
            running = pool.submit(deed, of)
            while not running.done() or batches < ends:
                write_batch(client, batches)
                batches += 1
            running.result()
    nemesis.close()
    assert batches >= 3 * len(deeds)
    found = sorted(int(value) for _, _, value in read_committed(cluster.bootstrap, TOPIC))
    assert found == list(range(batches * ROWS))
    with a_client(cluster) as client:
        for _ in range(10_000):  # its marker may still be on its way
            if committed := fetch_stable_offsets(client, [GROUP], MARKER).get(GROUP):
                break
        assert committed is not None
        assert committed.offset == batches - 1


def write_batch(client, batch):
    """Write a batch as the sink does: rows and a marker in one transaction."""
    producer = init_producer_id(client, NAME, transaction_timeout_ms=60_000)
    now_ms = int(time.time() * 1000)  # retention deletes what is old
    writer = IdempotentProducer(client, producer, batch_size_bytes=500)
    for row in range(batch * ROWS, (batch + 1) * ROWS):
        append(writer, TopicPartition(TOPIC, row % PARTITIONS), now_ms, b"%d" % row)
    writer.flush()
    writer.close()
    commit_offset(client, producer, GROUP, MARKER, CommittedOffset(batch, ""))
    end_transaction(client, producer, commit=True)
