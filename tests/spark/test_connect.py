"""Source and sink through Spark Connect: the client has no virtual machine, everything of ours runs in the server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.clusters import check_exactly, new_topic
from tests.spark.queries import fill

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("by", ["sink", "foreachBatch"])
def test_a_query_and_its_restart(bootstrap, tmp_path, by):
    source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 3)
    fill(bootstrap, source, range(1000))
    arguments = {
        "bootstrap": bootstrap,
        "source": source,
        "sink": sink,
        "limit": 400,
        "times": 2,
        "checkpoint": str(tmp_path / "checkpoint"),
        "by": by,
    }
    command = [sys.executable, "-m", "tests.spark.remote_pipeline", json.dumps(arguments)]
    with (tmp_path / "output").open("wb") as output, (tmp_path / "log").open("wb") as log:
        done = subprocess.run(command, cwd=ROOT, stdout=output, stderr=log, timeout=240, check=False)
    assert done.returncode == 0, (tmp_path / "log").read_text()[-6000:]
    first, second = (json.loads(line) for line in (tmp_path / "output").read_text().splitlines())
    # The second query goes on from the checkpoint, and there is nothing more.
    # (Where the driver asks for rows that turn out to be too many, Spark reads a batch twice, and counts it so.)
    assert sum(first) == 1000 if by == "sink" else sum(first) >= 1000
    assert len([rows for rows in first if rows]) >= 3
    assert sum(second) == 0
    check_exactly(bootstrap, sink, range(1000))
