"""Fixtures of the front's tests."""

from collections.abc import Iterator

import pytest

from tests.kafka.access_requests import Names
from tests.kafka.access_rules import HIDDEN, SEEN, Rules, but_hidden, furnish, rule
from tests.kafka.overloading import start
from tests.kafka.wire import Front, Wire, front

__all__ = ["broker", "start", "wire"]


@pytest.fixture
def broker() -> Iterator[Front]:
    """A broker in memory with default options."""
    with front() as running:
        yield running


@pytest.fixture
def wire(broker: Front) -> Wire:
    """A connection to it."""
    return broker.connect()


@pytest.fixture
def half_open() -> Iterator[tuple[Front, Wire, Names]]:
    """Run a broker at which clients may do everything, but with what is called hidden."""
    with front(auto_create_topics_enable=True) as broker:
        wire, ids, bound = furnish(broker)
        rule(broker, Rules(but_hidden))
        yield (
            broker,
            wire,
            Names(
                topics=[f"{SEEN}-t", f"{HIDDEN}-t"],
                groups=[f"{SEEN}-g", f"{HIDDEN}-g"],
                transactional_ids=[f"{SEEN}-x", f"{HIDDEN}-x"],
                ids=ids,
                bound=bound,
            ),
        )
