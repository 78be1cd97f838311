"""Fixtures: a world with a topic of six partitions."""

import pytest

from tests.core.world import World


@pytest.fixture
def world() -> World:
    world = World()
    world.topic(partition_count=6)
    return world
