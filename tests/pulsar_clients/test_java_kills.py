"""Consume, transform and produce by the client for Java, while it and the broker are killed: every number once."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pulsar_clients.campaign import INPUT, OUTPUT, Campaign
from tests.pulsar_clients.java import jars

KILLS = int(os.environ.get("EXACTA_TEST_PULSAR_KILLS", "20"))
"""The kills of all campaigns of one client together."""

CAMPAIGNS = [("Shared", "individual"), ("Failover", "individual"), ("Failover", "cumulative")]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """How the pipeline is started, up to its arguments."""
    java, javac = shutil.which("java"), shutil.which("javac")
    if java is None or javac is None:
        pytest.skip("no Java compiler is installed")
    folder, classes = tmp_path_factory.mktemp("classes"), f"{jars()}/*"
    source = Path(__file__).parent / "pipelines" / "Pipeline.java"
    subprocess.run([javac, "-cp", classes, "-d", str(folder), str(source)], check=True, timeout=300)
    return [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{classes}", "Pipeline"]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("kind", "how"), CAMPAIGNS, ids=["-".join(each) for each in CAMPAIGNS])
def test_every_number_is_there_once(
    pipeline: list[str], kind: str, how: str, tmp_path: Path, reports: list[str]
) -> None:
    place = CAMPAIGNS.index((kind, how))
    campaign = Campaign(tmp_path, lambda url: [*pipeline, url, INPUT, OUTPUT, kind, how, str(place)], seed=place)
    campaign.run(KILLS // 3 + (place < KILLS % 3))
    reports.append(f"Pulsar's client for Java, {kind}, {how}: {dict(campaign.kills)} killed, every number once")
