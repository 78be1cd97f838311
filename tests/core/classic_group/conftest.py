"""Fixtures: a group."""

import pytest

from tests.core.classic_group.members import Group


@pytest.fixture
def group() -> Group:
    return Group()
