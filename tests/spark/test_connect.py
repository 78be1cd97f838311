"""Source and sink through Spark Connect: the client has no virtual machine, everything of ours runs in the server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.clusters import check_exactly, new_topic
from tests.spark.queries import fill
from tests.spark.quick_java import quick_environment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]


def test_queries_and_their_restarts(bootstrap, tmp_path):
    ways = ("sink", "foreachBatch")
    jobs = [
        {
            "bootstrap": bootstrap,
            "source": new_topic(bootstrap, 2),
            "sink": new_topic(bootstrap, 3),
            "limit": 400,
            "times": 2,
            "checkpoint": str(tmp_path / by),
            "by": by,
        }
        for by in ways
    ]
    for job in jobs:
        fill(bootstrap, job["source"], range(1000))
    command = [sys.executable, "-m", "tests.spark.remote_pipeline", json.dumps(jobs)]
    environment = os.environ | quick_environment()
    with (tmp_path / "output").open("wb") as output, (tmp_path / "log").open("wb") as log:
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=output, stderr=log, timeout=240, check=False)
    assert done.returncode == 0, (tmp_path / "log").read_text()[-6000:]
    runs = [json.loads(line) for line in (tmp_path / "output").read_text().splitlines()]
    assert len(runs) == 4
    for job, first, second in zip(jobs, runs[::2], runs[1::2], strict=True):
        # The second query goes on from the checkpoint, and there is nothing more.
        # (Where the driver asks for rows that turn out to be too many, Spark reads a batch twice, and counts it so.)
        assert sum(first) == 1000 if job["by"] == "sink" else sum(first) >= 1000
        assert len([rows for rows in first if rows]) >= 3
        assert sum(second) == 0
        check_exactly(bootstrap, job["sink"], range(1000))
