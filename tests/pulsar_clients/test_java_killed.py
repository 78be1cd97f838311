"""The client for Java consumes, transforms and produces under kill -9 (`campaign.py`)."""

from pathlib import Path

import pytest

from tests.pulsar_clients.brokers import BUFFERS
from tests.pulsar_clients.campaign import KILLS, TIMEOUT_S, transform_under_kills
from tests.pulsar_clients.differences import told
from tests.pulsar_clients.transforming import compiled

CASES = {
    "shared": ("Shared", "individual"),
    "failover": ("Failover", "individual"),
    "cumulative": ("Failover", "cumulative"),
}

pytestmark = pytest.mark.timeout(TIMEOUT_S)


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("case", CASES)
def test_each_message_is_transformed_once(tmp_path: Path, case: str, buffer: str, reports: list[str]) -> None:
    (classes := tmp_path / "classes").mkdir()
    arrive = told("batches in transactions on a shared subscription, when clients are killed")
    program = compiled(classes, Path(__file__).with_name("Transform.java"))
    kills, in_batches = -(-KILLS // (len(CASES) * len(BUFFERS))), arrive == "once each"
    reports.append(transform_under_kills(program, *CASES[case], kills, tmp_path, in_batches=in_batches, buffer=buffer))
