"""The lost markers are written again, after answers that a cluster of Apache Kafka would give.

A cluster that really lost some: `tests/spark/sink/test_lost_markers.py` with EXACTA_TEST_BROKER=kafka.
"""

from types import SimpleNamespace
from typing import cast

import pytest

from exacta.client import lost_markers
from exacta.client.deadline import Backoff, Deadline
from exacta.client.errors import UnsupportedByBroker
from exacta.client.lost_markers import held_open, write_lost_markers
from exacta.client.routing import BrokerGone, Client, Leader
from exacta.client.transactions import TopicPartition, TransactionDescription
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

OPEN, ENDED = 5, -1


class Cluster:
    """Answers as brokers do; remembers the markers that are written. `leaders`: who leads each partition of topic t."""

    def __init__(self, leaders, producers):
        self.leaders = leaders
        self.producers = producers  # partition -> (producer id, epoch, first offset of the open transaction)
        self.written = []
        self.failures = []

    def deadline(self, timeout_ms=5_000):
        return Deadline(timeout_ms)

    def all_partitions(self, *, deadline):
        return {"t": sorted(self.leaders)}

    def nodes(self, deadline):
        return [1, 2]

    def call(self, route, request, *, what, codes, deadline):
        if isinstance(request, DescribeProducersRequest):
            if self.failures:
                raise self.failures.pop(0)
            return self._producers(route.node_id)
        (marker,) = request.markers
        ((topic, (partition,)),) = [(each.name, each.partition_indexes) for each in marker.topics]
        assert route == Leader(topic, partition)
        epochs = (marker.producer_epoch, marker.coordinator_epoch)
        self.written.append((partition, marker.producer_id, *epochs, marker.transaction_result))
        return None

    def _producers(self, node):
        def answer(partition):
            if self.leaders[partition] != node:
                return PartitionResponse(partition_index=partition, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
            states = [
                ProducerState(
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    coordinator_epoch=-1 if epoch == 0 else 7,
                    current_txn_start_offset=first,
                )
                for producer_id, epoch, first in self.producers.get(partition, ())
            ]
            return PartitionResponse(partition_index=partition, active_producers=states)

        return DescribeProducersResponse(topics=[TopicResponse(name="t", partitions=[*map(answer, self.leaders)])])


def as_client(cluster: Cluster) -> Client:
    """Let it be called as a client: it has what is asked for here."""
    return cast("Client", cluster)


def described(monkeypatch, *answers):
    """Let the coordinators answer so, one after the other; the last one goes on."""
    left = [
        {
            name: TransactionDescription(state, producer_id, epoch, frozenset())
            for name, (state, producer_id, epoch) in each.items()
        }
        for each in answers
    ]
    monkeypatch.setattr(
        lost_markers, "describe_transactions", lambda *_: left.pop(0) if len(left) > 1 else dict(left[0])
    )


def test_what_is_complete_and_held_open_is_ended_as_it_was(monkeypatch):
    cluster = Cluster({0: 1, 1: 2, 2: 2}, {0: [(8, 3, OPEN)], 1: [(8, 3, ENDED), (9, 0, OPEN)], 2: [(6, 1, OPEN)]})
    described(monkeypatch, {"a": ("CompleteCommit", 8, 3), "b": ("CompleteAbort", 9, 0), "c": ("Ongoing", 6, 1)})
    assert set(write_lost_markers(as_client(cluster), ["a", "b", "c"])) == {"a", "b"}
    assert cluster.written == [(0, 8, 3, 7, True), (1, 9, 0, 0, False)]


def test_what_is_being_ended_is_waited_for(monkeypatch):
    cluster = Cluster({0: 1}, {0: [(8, 3, OPEN)]})
    described(monkeypatch, {"a": ("PrepareCommit", 8, 3)}, {"a": ("CompleteCommit", 8, 3)})
    assert set(write_lost_markers(as_client(cluster), ["a"])) == {"a"}
    assert cluster.written == [(0, 8, 3, 7, True)]


@pytest.mark.parametrize("state", [("Ongoing", 8, 3), ("Empty", 8, 4), ("CompleteAbort", 8, 3)])
def test_an_id_that_is_used_again_meanwhile_is_left_alone(monkeypatch, state):
    cluster = Cluster({0: 1}, {0: [(8, 3, OPEN)]})
    described(monkeypatch, {"a": ("CompleteCommit", 8, 3)}, {"a": state})
    assert write_lost_markers(as_client(cluster), ["a"]) == {}
    assert cluster.written == []


def test_a_younger_incarnation_on_the_partition_is_left_alone(monkeypatch):
    cluster = Cluster({0: 1}, {0: [(8, 4, OPEN)]})
    described(monkeypatch, {"a": ("CompleteCommit", 8, 3)})
    write_lost_markers(as_client(cluster), ["a"])
    assert cluster.written == []


def test_a_partition_without_a_leader_is_waited_for_but_not_for_ever(monkeypatch):
    cluster = Cluster({0: 1, 1: None}, {0: [(8, 3, OPEN)], 1: [(8, 3, OPEN)]})
    waits = []

    def wait(self, deadline, cause):
        waits.append(str(cause))
        if len(waits) == 2:
            cluster.leaders[1] = 2

    monkeypatch.setattr(Backoff, "wait", wait)
    cluster.failures.append(BrokerGone("broker 1 has left the cluster"))
    assert [held.at.partition for held in held_open(as_client(cluster), {8})[8]] == [0, 1]
    assert len(waits) == 2
    assert "t" in waits[0]
    cluster.leaders[1] = None
    monkeypatch.setattr(cluster, "deadline", lambda timeout_ms=0: SimpleNamespace(passed=True))
    assert [held.at for held in held_open(as_client(cluster), {8})[8]] == [TopicPartition("t", 0)]


def test_brokers_that_do_not_tell():
    cluster = Cluster({0: 1}, {0: [(8, 3, OPEN)]})
    cluster.failures.append(UnsupportedByBroker("DescribeProducers"))
    assert held_open(as_client(cluster), {8}) == {}
    assert held_open(as_client(cluster), set()) == {}
