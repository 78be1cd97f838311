"""Fixtures: a journal that a killed broker left behind."""

from pathlib import Path

import pytest

from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests import repairing
from tests.adapters.turns import Turns
from tests.repair.disks import names
from tests.repairing import findings, on_disk


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal whose broker was killed, so that it has events behind its newest snapshot."""
    directory = tmp_path_factory.mktemp("written")
    repairing.write(directory, stops=False)
    return directory


@pytest.fixture(scope="session")
def sound(data: Path) -> SimulatedDisk:
    disk = on_disk(data / "journal")
    open_journal(disk, Turns().call_soon).close()  # as the next start leaves it
    assert findings(disk) == []
    assert len(names(disk, ".log")) >= 4
    assert len(names(disk, ".snapshot")) == 2
    return disk
