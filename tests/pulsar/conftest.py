"""Fixtures of the front's tests."""

from collections.abc import Iterator

import pytest

import exacta
from tests.pulsar.web import REAL, REAL_WEB, Web
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


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    """A client of the web interface, of ours or of a real Apache Pulsar's."""
    if REAL_WEB is not None:
        assert REAL is not None
        yield Web(REAL_WEB, REAL)
        return
    with running() as broker:
        yield Web(broker.web_url, broker.pulsar_url)
