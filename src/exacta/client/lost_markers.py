"""Transactions that are complete for their coordinator and open on a partition: found, and ended once more.

Theory of operation. A coordinator decides a transaction, has a marker written to each of its partitions, and then calls
it complete. Apache Kafka (tried on 4.4.0) does so as well where a partition has no leader at that moment: it takes such
a partition for a deleted one. Without replicas that is every partition of a broker which was killed, from the end of
its old session until it is registered again. So a broker that dies between its answer to EndTxn and the markers loses
them, for ever: the offsets of groups stay pending, and readers of committed data stand still.

The next marker of the same producer id ends what is still open, in its own way, whatever had been decided before. So an
empty transaction on the same partitions that ends as the first one did sets things right.
"""

from __future__ import annotations

from collections.abc import Collection

from exacta.client.deadline import Deadline
from exacta.client.errors import UnsupportedByBroker
from exacta.client.routing import Client, Node
from exacta.client.transactions import Producer, TopicPartition, add_group, add_partitions, end_transaction
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest


def partitions_held_open(
    client: Client, producer_ids: Collection[int], deadline: Deadline | None = None
) -> dict[int, set[TopicPartition]]:
    """Return the partitions on which producers have a transaction open, as the partitions' leaders see it (KIP-664).

    Internal topics are left out, and so is what this client may not read or nobody leads. Nothing is found where the
    brokers do not tell (before Apache Kafka 2.8).
    """
    deadline = deadline or client.deadline()
    counts = client.partitions(client.topic_names(deadline=deadline), deadline=deadline)
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=[*range(count)]) for topic, count in counts.items()]
    )
    found: dict[int, set[TopicPartition]] = {}
    for node_id in client.nodes(deadline):
        try:
            # Each broker answers for what it leads, and refuses the rest.
            reply = client.call(
                Node(node_id), request, what="looking for open transactions", codes=lambda _: (), deadline=deadline
            )
        except UnsupportedByBroker:
            return {}
        for topic in reply.topics:
            for partition in topic.partitions:
                if partition.error_code != ErrorCode.NONE:
                    continue
                for state in partition.active_producers:
                    if state.producer_id in producer_ids and state.current_txn_start_offset >= 0:
                        at = TopicPartition(topic.name, partition.partition_index)
                        found.setdefault(state.producer_id, set()).add(at)
    return found


def end_again(
    client: Client,
    producer: Producer,
    *,
    groups: Collection[str],
    partitions: Collection[TopicPartition],
    commit: bool,
    deadline: Deadline | None = None,
) -> None:
    """Write the markers of an ended transaction once more; `producer` has its producer id, and nothing open.

    `commit` must be how that transaction ended.
    """
    deadline = deadline or client.deadline()
    if partitions:
        add_partitions(client, producer, partitions, deadline)
    for group in groups:
        add_group(client, producer, group, deadline)
    end_transaction(client, producer, commit=commit, deadline=deadline)
