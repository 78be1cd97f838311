"""Fixtures of the front's tests."""

from collections.abc import Iterator

import pytest

from tests.kafka.wire import Front, Wire, front


@pytest.fixture
def broker() -> Iterator[Front]:
    """A broker in memory with default options."""
    with front() as running:
        yield running


@pytest.fixture
def wire(broker: Front) -> Wire:
    """A connection to it."""
    return broker.connect()
