"""Fixtures: a broker for both protocols' clients."""

from collections.abc import Iterator

import pytest

import exacta
from tests.pulsar.wire import running


@pytest.fixture
def broker() -> Iterator[exacta.Broker]:
    """A broker that serves both."""
    with running() as started:
        yield started
