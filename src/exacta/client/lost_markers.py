"""Find transactions that are complete for their coordinator and open on a partition, and write their markers again.

Theory of operation. A coordinator decides a transaction, has a marker written to each of its partitions, and then calls
it complete. Apache Kafka (tried on 4.4.0) does so as well where a partition has no leader at that moment: it takes such
a partition for a deleted one. Without replicas that is every partition of a broker which was killed, from the end of
its old session until it is registered again. So a broker that dies between its answer to EndTxn and the markers loses
them, for ever: the offsets of groups stay pending, readers of committed data stand still, and the next marker of the
same producer id ends what is open in its own way, whatever had been decided.

The coordinator still knows how the transaction had ended, until its id is used again. So the markers are written as it
would have (WriteTxnMarkers, what `kafka-transactions.sh abort` uses): in one step, which may be repeated, and which a
partition refuses from an older incarnation than it has seen.
"""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from exacta.client.deadline import Backoff, Deadline
from exacta.client.errors import ClientError, UnsupportedByBroker
from exacta.client.routing import BrokerGone, Client, Leader, Node
from exacta.client.transactions import TopicPartition, TransactionDescription, describe_transactions
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from exacta.protocol.kafka.messages.k61_describe_producers import DescribeProducersRequest, ProducerState, TopicRequest

_COMPLETE = {"CompleteCommit": True, "CompleteAbort": False}
"""A map from a transaction's final states to whether it is committed."""
_ENDING = frozenset({"PrepareCommit", "PrepareAbort", "PrepareEpochFence"})

_LEADERLESS_MS = 5_000
"""The time for which a partition that nobody leads is waited for. A broker that is started again takes a few seconds,
and others of the cluster may be gone for good."""

_SETTLED = frozenset({ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""The partition has seen a younger incarnation, or is gone: nothing of the lost transaction is open there."""


class HeldOpen(NamedTuple):
    """A partition on which a producer has a transaction open, and the last coordinator that ended one there."""

    at: TopicPartition
    producer_epoch: int
    coordinator_epoch: int


def write_lost_markers(
    client: Client, transactional_ids: Collection[str], deadline: Deadline | None = None
) -> dict[str, TransactionDescription]:
    """Write the markers that are missing of these ids' last transactions; return those that had lost some.

    Transactions that are being ended are waited for, open ones are left alone. Raises `KafkaError`, with
    CLUSTER_AUTHORIZATION_FAILED where the user may not write markers (ClusterAction).
    """
    deadline = deadline or client.deadline()
    before = once_ended(client, transactional_ids, deadline)
    held = held_open(client, {state.producer_id for state in before.values()}, deadline)
    if not held:
        return {}
    # What was open while one of them had begun another one is none of ours.
    after = describe_transactions(client, list(before), deadline)
    lost = {each: state for each, state in before.items() if state.producer_id in held and after[each] == state}
    for state in lost.values():
        _write(client, state, held[state.producer_id], deadline)
    return lost


def once_ended(
    client: Client, transactional_ids: Collection[str], deadline: Deadline | None = None
) -> dict[str, TransactionDescription]:
    """Return the ids whose last transaction has ended, once those that are being ended have."""
    deadline, backoff = deadline or client.deadline(), Backoff()
    while True:
        states = describe_transactions(client, list(transactional_ids), deadline)
        ending = [each for each, state in states.items() if state is not None and state.state in _ENDING]
        if not ending:
            return {each: state for each, state in states.items() if state is not None and state.state in _COMPLETE}
        backoff.wait(deadline, ClientError(f"the transaction of '{ending[0]}' is being ended"))


def held_open(
    client: Client, producer_ids: Collection[int], deadline: Deadline | None = None
) -> dict[int, list[HeldOpen]]:
    """Return the partitions on which producers have a transaction open, as the partitions' leaders see it (KIP-664).

    Partitions that this client may not read are left out, and so are those that nobody leads for a while. Nothing is
    found if the brokers do not tell (Apache Kafka before 2.8).
    """
    deadline = deadline or client.deadline()
    if not producer_ids:
        return {}
    patience, backoff = client.deadline(_LEADERLESS_MS), Backoff()
    while True:
        found: dict[int, list[HeldOpen]] = {}
        partitions = client.all_partitions(deadline=deadline)
        unanswered = {TopicPartition(topic, partition) for topic, each in partitions.items() for partition in each}
        request = DescribeProducersRequest(
            topics=[TopicRequest(name=topic, partition_indexes=each) for topic, each in partitions.items()]
        )
        try:
            for node_id in client.nodes(deadline):
                # Each broker answers for what it leads.
                reply = client.call(
                    Node(node_id), request, what="looking for open transactions", codes=lambda _: (), deadline=deadline
                )
                for at, code, states in _answers(reply):
                    if code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                        unanswered.discard(at)
                    for state in states:
                        if state.producer_id in producer_ids and state.current_txn_start_offset >= 0:
                            held = HeldOpen(at, state.producer_epoch, max(0, state.coordinator_epoch))
                            found.setdefault(state.producer_id, []).append(held)
        except UnsupportedByBroker:
            return {}
        except BrokerGone:
            continue
        if not unanswered or patience.passed:
            return found
        backoff.wait(deadline, ClientError(f"nobody leads {sorted(unanswered)[0]}"))


def _answers(reply: Any) -> Iterator[tuple[TopicPartition, int, list[ProducerState]]]:
    for topic in reply.topics:
        for partition in topic.partitions:
            yield (
                TopicPartition(topic.name, partition.partition_index),
                partition.error_code,
                partition.active_producers,
            )


def _write(client: Client, state: TransactionDescription, held: Collection[HeldOpen], deadline: Deadline) -> None:
    for at, producer_epoch, coordinator_epoch in held:
        if producer_epoch > state.producer_epoch:
            continue
        marker = WritableTxnMarker(
            producer_id=state.producer_id,
            producer_epoch=state.producer_epoch,
            transaction_result=_COMPLETE[state.state],
            topics=[WritableTxnMarkerTopic(name=at.topic, partition_indexes=[at.partition])],
            coordinator_epoch=coordinator_epoch,
        )
        client.call(
            Leader(*at),
            WriteTxnMarkersRequest(markers=[marker]),
            what=f"writing a lost marker to {at}",
            codes=lambda reply: (
                partition.error_code
                for each in reply.markers
                for topic in each.topics
                for partition in topic.partitions
                if partition.error_code not in _SETTLED
            ),
            deadline=deadline,
        )
