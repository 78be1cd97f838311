"""Fixtures: a broker with two-phase commits, and a place of each kind for a test.

`EXACTA_TEST_TWO_PHASE=N` (`make test-with WHAT=two-phase`) runs all tests with PostgreSQL as well, every
pair of crashes, and the campaign with N kills.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import exacta
from tests.databases import shop
from tests.databases.mortal import Lives
from tests.databases.postgresql import PostgresServer, a_server
from tests.spark.clusters import new_topic

KILLS = int(os.environ.get("EXACTA_TEST_TWO_PHASE", "0"))
KINDS = ["sqlite", "postgres"] if KILLS else ["sqlite"]
each_kind = pytest.mark.parametrize("kind", KINDS)
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"])
on_postgres = pytest.mark.parametrize(
    "kind", [pytest.param("postgres", marks=pytest.mark.skipif(not KILLS, reason="make test-with WHAT=two-phase"))]
)
takes_minutes = pytest.mark.skipif(not KILLS, reason="it takes minutes: make test-with WHAT=two-phase")
OPTIONS = {"transaction.two.phase.commit.enable": True}

NewPlace = Callable[..., shop.Place]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with a_server() as server:
        yield server


@pytest.fixture(scope="module")
def broker() -> Iterator[exacta.Broker]:
    with exacta.Broker(config=OPTIONS) as broker:
        yield broker


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with Lives() as lives:
        yield lives


@pytest.fixture
def new_place(broker: exacta.Broker, tmp_path: Path, request: pytest.FixtureRequest) -> NewPlace:
    def make(kind: str, *, timeout_ms: float = 60_000, partitions: int = 1) -> shop.Place:
        topic = new_topic(broker.bootstrap_servers, partitions)
        if kind == "sqlite":
            address = str(tmp_path / f"{topic}.db")
        else:
            address = request.getfixturevalue("postgres").new_database(topic)
        place = shop.Place(kind, address, broker.bootstrap_servers, topic, timeout_ms)
        shop.make_table(place)
        return place

    return make


@pytest.fixture
def place(new_place: NewPlace, kind: str) -> shop.Place:
    return new_place(kind)
