"""Fixtures of the tests of subscriptions."""

import pytest

from exacta.core.replies import DONE
from tests.core.world import SMALL, World


@pytest.fixture
def world() -> World:
    """A topic whose messages 0 to 9 are committed, with their marker at offset 10."""
    world = World(SMALL)
    world.topic()
    writer = world.handle()
    writer.append(count=10)
    assert writer.end(commit=True) == DONE
    return world
