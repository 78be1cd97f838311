"""Send many small requests at once to their coordinators, over several connections with several in flight each.

This module owns the spreading over connections. Apache Kafka executes the requests of a connection one after the other,
so ending many transactions over one connection takes as long as their sum. A request that fails here in any way is left
to `Client.call`, which repeats it.
"""

from collections.abc import Sequence
from typing import Any

from exacta.client.connection import Connection
from exacta.client.deadline import Deadline, for_one_request
from exacta.client.errors import ConnectionLost
from exacta.client.routing import Client, Route
from exacta.protocol.kafka.schema import Message

LANES = 4


def ask_all(client: Client, requests: Sequence[tuple[Route, Message]], deadline: Deadline) -> list[Any | None]:
    """Send every request along its route; return the replies in order, None for one that got lost.

    Replies are not looked into. Every request may have been executed, even if its reply is None.
    """
    replies: list[Any | None] = [None] * len(requests)
    lanes: dict[tuple[int, int], list[int]] = {}
    for index, (route, _) in enumerate(requests):
        try:
            node_id = client.resolve(route, deadline)
        except ConnectionLost:
            continue
        if node_id is not None:
            lanes.setdefault((node_id, index % LANES), []).append(index)
    sent: list[tuple[Connection, int]] = []
    try:
        for (node_id, lane), indexes in lanes.items():
            try:
                connection = client.lane(node_id, lane, deadline)
                for index in indexes:
                    connection.send(requests[index][1], deadline)
                    sent.append((connection, index))
            except ConnectionLost:
                continue
        # What silent brokers hold back must still be repeated before the deadline: they share one wait.
        patience = for_one_request(deadline)
        for connection, index in sent:
            if not connection.closed:
                try:
                    replies[index] = connection.receive(patience)
                    patience = for_one_request(deadline)
                except ConnectionLost:
                    continue
    finally:
        # A lane is kept: a reply left on it would be taken for the answer to the next request.
        for connection, _ in sent:
            if connection.in_flight:
                connection.close()
    return replies
