"""The rig that most tests of the engine begin with, over a journal of one machine, and over one that brokers share."""

import pytest

from tests.engine.following import Followed
from tests.engine.rig import Rig

JOURNALS = {"exclusive": True, "shared": False}


@pytest.fixture(params=JOURNALS)
def rig(request: pytest.FixtureRequest) -> Rig:
    """Return a rig with topic `t`."""
    rig = Rig(is_exclusive=JOURNALS[request.param])
    rig.topic()
    return rig


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, over a shared journal, what is about a journal that one machine has for itself."""
    items[:] = [item for item in items if item.get_closest_marker("exclusive") is None or not _is_shared(item)]


def _is_shared(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "rig" in item.fixturenames and item.callspec.params["rig"] == "shared"


@pytest.fixture
def followed() -> Followed:
    """Return a rig with topic `t` that is followed."""
    rig = Followed()
    rig.topic()
    rig.follow()
    return rig
