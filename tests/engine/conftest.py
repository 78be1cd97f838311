"""The rig that most tests of the engine begin with."""

import pytest

from tests.engine.rig import Rig


@pytest.fixture
def rig() -> Rig:
    """Return a rig with topic `t`."""
    rig = Rig()
    rig.topic()
    return rig
