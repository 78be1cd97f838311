"""Connections that are lent and kept: only one on which nothing is to come is given out again."""

import socket

import pytest

from exacta.client.deadline import Deadline
from exacta.client.routing import Client
from exacta.protocol.kafka.messages.k66_list_transactions import ListTransactionsRequest


@pytest.fixture
def client(bootstrap):
    with Client(bootstrap) as client:
        yield client


def test_a_connection_that_was_given_back_is_lent_again(client):
    node_id, deadline = client.nodes()[0], Deadline(10_000)
    first, second = client.lease(node_id, deadline), client.lease(node_id, deadline)
    assert first is not second
    client.release(node_id, first)
    client.release(node_id, second)
    assert second.closed  # one is kept
    assert client.lease(node_id, deadline) is first
    first.call(ListTransactionsRequest(), deadline)
    client.release(node_id, first)


def test_one_with_an_answer_still_to_come_is_not(client):
    node_id, deadline = client.nodes()[0], Deadline(10_000)
    connection = client.lease(node_id, deadline)
    connection.send(ListTransactionsRequest(), deadline)
    client.release(node_id, connection)
    assert connection.closed
    other = client.lease(node_id, deadline)
    assert other is not connection
    client.release(node_id, other)


def test_one_on_which_the_broker_hung_up_is_not(client):
    node_id, deadline = client.nodes()[0], Deadline(10_000)
    connection = client.lease(node_id, deadline)
    client.release(node_id, connection)
    connection._socket.shutdown(socket.SHUT_RD)
    other = client.lease(node_id, deadline)
    assert other is not connection
    other.call(ListTransactionsRequest(), deadline)
    assert connection.closed
    client.release(node_id, other)


def test_one_to_where_the_broker_was_before_is_not(client):
    node_id, deadline = client.nodes()[0], Deadline(10_000)
    connection = client.lease(node_id, deadline)
    connection.address = "elsewhere:1"
    client.release(node_id, connection)
    assert connection.closed


def test_closing_the_client_closes_what_is_kept(client):
    node_id = client.nodes()[0]
    connection = client.lease(node_id, Deadline(10_000))
    client.release(node_id, connection)
    client.close()
    assert connection.closed
