"""Fixtures: a group."""

import pytest

from tests.core.groups.classic.members import Group


@pytest.fixture
def group() -> Group:
    return Group()
