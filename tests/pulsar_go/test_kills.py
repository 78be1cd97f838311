"""The client for Go consumes, transforms and produces under kill -9 (`tests/pulsar_clients/campaign.py`)."""

from pathlib import Path

import pytest

from tests.pulsar_clients.brokers import BUFFERS
from tests.pulsar_clients.campaign import KILLS, TIMEOUT_S, transform_under_kills

KINDS = ["Shared", "Failover"]


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_there_once(program: Path, kind: str, buffer: str, tmp_path: Path, reports: list[str]) -> None:
    # In a transaction the client acknowledges again what it has acknowledged before of the same batch.
    kills = KILLS // (len(KINDS) * len(BUFFERS))
    report = transform_under_kills([str(program)], kind, "individual", kills, tmp_path, in_batches=False, buffer=buffer)
    reports.append(f"Go: {report}")
