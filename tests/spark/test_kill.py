"""kill -9 of a whole Spark, at every point of the sink's protocol in turn."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.spark import faults
from tests.spark.clusters import check_exactly, new_topic

pytestmark = pytest.mark.spark

ROWS = 6000
ROOT = Path(__file__).parents[2]
LIFE_TIMEOUT_S = 240  # a life takes ten seconds where nothing else runs


def live(directory: Path, **arguments) -> int:
    """Run one life of the query; return its exit code (-9: it was killed)."""
    given = json.dumps({"directory": str(directory), **arguments})
    # To a file, not a pipe: what survives the kill for a moment would keep a pipe open.
    with (directory / "output").open("wb") as output:
        life = subprocess.run(
            [sys.executable, "-m", "tests.spark.pipelines", given],
            cwd=ROOT,
            timeout=LIFE_TIMEOUT_S,
            stdout=output,
            stderr=output,
            check=False,
        )
    if life.returncode not in (0, -9):
        raise AssertionError(f"the query failed:\n{(directory / 'output').read_text()[-6000:]}")
    return life.returncode


@pytest.mark.timeout(900)
def test_killed_at_every_point_of_the_protocol(bootstrap, tmp_path):
    source, sink = new_topic(bootstrap, 2, "source"), new_topic(bootstrap, 3, "sink")
    producer = Producer({"bootstrap.servers": bootstrap})
    for row in range(ROWS):
        producer.produce(source, key=b"%d" % (row % 97), value=b"%d" % row)
    producer.flush()
    arguments = {"bootstrap": bootstrap, "source": source, "sink": sink, "limit": ROWS // 6}
    for point in faults.KILL_POINTS:
        faults.arm(tmp_path, point)
        assert live(tmp_path, **arguments) == -9, f"was not killed: {point}"
    assert live(tmp_path, **arguments) == 0
    assert faults.struck(tmp_path) == list(faults.KILL_POINTS)
    check_exactly(bootstrap, sink, range(ROWS))
