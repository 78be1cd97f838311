"""Many requests at once, and what is left on the connections where it goes wrong."""

import pytest

from exacta.client.bulk import ask_all
from exacta.client.connection import Connection
from exacta.client.deadline import Deadline
from exacta.client.errors import ConnectionLost, KafkaError
from exacta.client.routing import Client, Node
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k66_list_transactions import ListTransactionsRequest


class Unwilling(Client):
    """A client that may open no more than one lane."""

    def lane(self, node_id, index, deadline):
        if self._connections._lanes:
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "looking up the brokers")
        return super().lane(node_id, index, deadline)


def test_no_reply_is_left_on_a_lane_when_a_later_one_cannot_be_opened(bootstrap):
    with Unwilling(bootstrap) as client:
        node_id = client.nodes()[0]
        requests = [(Node(node_id), ListTransactionsRequest())] * 2
        with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
            ask_all(client, requests, Deadline(10_000))
        assert [lane.in_flight for lane in client._connections._lanes.values()] == [0]
        assert [lane.closed for lane in client._connections._lanes.values()] == [True]


def test_a_lane_that_owes_a_reply_is_not_handed_out(bootstrap):
    with Client(bootstrap) as client:
        node_id, deadline = client.nodes()[0], Deadline(10_000)
        client.lane(node_id, 0, deadline).send(ListTransactionsRequest(), deadline)
        with pytest.raises(AssertionError):
            client.lane(node_id, 0, deadline)


def test_a_call_that_is_interrupted_leaves_no_reply_to_the_next_one(bootstrap, monkeypatch):
    with Client(bootstrap) as client:
        node_id, deadline = client.nodes()[0], Deadline(10_000)
        connection: Connection = client.lease(node_id, deadline)

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(connection, "_read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            connection.call(ListTransactionsRequest(), deadline)
        assert connection.closed


def test_a_closed_connection_says_so(bootstrap):
    with Client(bootstrap) as client:
        node_id, deadline = client.nodes()[0], Deadline(10_000)
        connection: Connection = client.lease(node_id, deadline)
        connection.send(ListTransactionsRequest(), deadline)
        connection.close()
        for use in (lambda: connection.receive(deadline), lambda: connection.call(ListTransactionsRequest(), deadline)):
            with pytest.raises(ConnectionLost, match="is closed"):
                use()
