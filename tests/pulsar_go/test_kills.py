"""Consume, transform and produce by the client for Go, while it and the broker are killed: every number once."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.pulsar_go.campaign import INPUT, OUTPUT, Campaign
from tests.pulsar_go.conftest import BUILD_SECONDS

KILLS = int(os.environ.get("EXACTA_TEST_KILLS", "20"))
"""The kills of all campaigns of one client together."""

KINDS = ["Shared", "Failover"]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built."""
    program = tmp_path_factory.mktemp("pipeline") / "pipeline"
    command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(program), "."]
    subprocess.run(command, cwd=Path(__file__).parent / "pipeline", check=True, timeout=BUILD_SECONDS)
    return program


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_there_once(pipeline: Path, kind: str, tmp_path: Path, reports: list[str]) -> None:
    place = KINDS.index(kind)
    command = [INPUT, OUTPUT, kind, str(place)]
    campaign = Campaign(tmp_path, lambda url: [str(pipeline), url, *command], seed=10 + place)
    campaign.run(KILLS // 2)
    reports.append(f"Pulsar's client for Go, {kind}: {dict(campaign.kills)} killed, every number once")
