"""The client for Go consumes, transforms and produces under kill -9 (`tests/pulsar_clients/campaign.py`)."""

import subprocess
from pathlib import Path

import pytest

from tests.pulsar_clients.campaign import KILLS, TIMEOUT_S, transform_under_kills
from tests.pulsar_go.conftest import BUILD_SECONDS

KINDS = ["Shared", "Failover"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built."""
    found = tmp_path_factory.mktemp("pipeline") / "pipeline"
    command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(found), "."]
    subprocess.run(command, cwd=Path(__file__).parent / "pipeline", check=True, timeout=BUILD_SECONDS)
    return found


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_there_once(program: Path, kind: str, tmp_path: Path, reports: list[str]) -> None:
    # In a transaction the client acknowledges anew what it has acknowledged before of the same batch.
    kills = KILLS // len(KINDS)
    report = transform_under_kills([str(program)], kind, "individual", kills, tmp_path, in_batches=False)
    reports.append(f"Go: {report}")
