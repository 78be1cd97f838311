"""A client that knows a follower only, which decides nothing, has all that is decided done by the leader."""

from collections.abc import Iterator

import pytest

from exacta.client.configs import Resource, change_settings, describe_settings
from exacta.client.errors import KafkaError
from exacta.client.group_administration import listed_groups
from exacta.client.handles import abort_handle
from exacta.client.routing import Client
from exacta.client.subscriptions import describe_subscriptions
from exacta.client.transactions import new_producer
from exacta.protocol.kafka.errors import ErrorCode
from tests.kafka.following import FOLLOWER, LEADER, Follower, following


@pytest.fixture
def follower() -> Iterator[Follower]:
    with following() as running:
        yield running


@pytest.fixture
def client(follower: Follower) -> Iterator[Client]:
    with Client("{}:{}".format(*follower.address), call_timeout_ms=5_000) as made:
        yield made


def test_a_topic_is_created_on_demand(client: Client) -> None:
    assert client.partitions(["t"], create=True) == {"t": 1}


def test_a_producer_has_its_id(client: Client) -> None:
    assert new_producer(client).producer_id >= 0


def test_options_are_set_for_each_broker(client: Client, follower: Follower) -> None:
    for node_id in (LEADER, FOLLOWER):
        change_settings(client, Resource("broker", str(node_id)), {"max.connections": str(100 + node_id)})
    assert follower.context.configuration.max_connections == 102
    settings = describe_settings(client, Resource("broker", str(FOLLOWER)))
    assert {each.name: each.value for each in settings}["max.connections"] == "102"
    change_settings(client, Resource("broker-logger", str(FOLLOWER)), {"exacta.kafka": "INFO"})


def test_our_own_requests_come_to_the_leader(client: Client) -> None:
    client.partitions(["t"], create=True)
    assert list(describe_subscriptions(client)) == []
    assert listed_groups(client) == []
    with pytest.raises(KafkaError) as refused:
        abort_handle(client, 7)
    assert refused.value.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
