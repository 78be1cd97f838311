"""Fixtures of the front's tests."""

from collections.abc import Iterator

import pytest

import exacta
from tests.pulsar.wire import Wire, running


@pytest.fixture
def broker() -> Iterator[exacta.Broker]:
    """A broker with default options."""
    with running() as started:
        yield started


@pytest.fixture
def wire(broker: exacta.Broker) -> Iterator[Wire]:
    """A connection to it."""
    opened = Wire(broker.pulsar_url)
    yield opened
    opened.close()
