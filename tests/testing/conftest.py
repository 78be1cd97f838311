"""A broker for each test of the kit's faults."""

from collections.abc import Iterator

import pytest

import exacta


@pytest.fixture
def broker() -> Iterator[exacta.Broker]:
    with exacta.Broker() as broker:
        broker.create_topic("orders", 1)
        yield broker
