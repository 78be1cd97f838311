"""Pulsar's web interface at a broker that follows: it answers questions, and sends on what changes something."""

import http.client
from collections.abc import Iterator
from typing import Any

import pytest

import exacta
from exacta.ports.cluster import Node
from tests.pulsar.test_at_follower import Known
from tests.pulsar.web import Web, new_name, partitions, path
from tests.pulsar.wire import ANSWER_SECONDS, running


@pytest.fixture
def following() -> Iterator[tuple[exacta.Broker, Known]]:
    with running() as broker:
        served: Any = broker._server
        served._broker.cluster = known = Known()
        doors = {door.front: door.name for door in served.reception.doors if door.front in ("pulsar", "web")}
        known.leader = Node(1, None, {doors["pulsar"]: ("leader", 6650), doors["web"]: ("leader", 8080)})
        yield broker, known


def test_a_change_is_sent_on_to_the_leader(following: tuple[exacta.Broker, Known]) -> None:
    broker, known = following
    name = path(new_name(), "partitions?x=%2F")
    for leader, status, location in ((known.leader, 307, f"http://leader:8080{name}"), (None, 503, None)):
        known.leader = leader
        connection = http.client.HTTPConnection(broker.web_url.removeprefix("http://"), timeout=ANSWER_SECONDS)
        connection.request("PUT", name, body="3", headers={"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("location")) == (status, location)
        connection.close()


def test_questions_are_answered_here(following: tuple[exacta.Broker, Known]) -> None:
    broker, known = following
    web = Web(broker.web_url, broker.pulsar_url)
    assert partitions(web, new_name())[0] == 404
    assert partitions(web, new_name(), creates=True)[1]["partitions"] == 0
    status, found = web.ask("GET", "/lookup/v2/topic/persistent/public/default/t")
    assert (status, found["brokerUrl"], found["httpUrl"]) == (200, "pulsar://leader:6650", "http://leader:8080")
    known.leader = None
    assert web.ask("GET", "/lookup/v2/topic/persistent/public/default/t")[0] == 503
