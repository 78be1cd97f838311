"""Fixtures: a world with a topic in it."""

import pytest

from tests.core.world import World


@pytest.fixture
def world() -> World:
    world = World()
    world.topic()
    return world
