"""Source and sink through Spark Connect: the client has no virtual machine, everything of ours runs in the server."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest
from packaging.version import Version

from tests.spark.clusters import check_exactly, new_topic
from tests.spark.queries import fill
from tests.spark.quick_java import quick_environment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]


CLONED = "spark.sql.connect.streaming.foreachBatch.useClonedSession"
"""Since PySpark 4.3 the rows that a function of foreachBatch gets belong to a session of their own, a clone of the
query's. Without this setting they belong to the query's, as before."""

HAS_CLONES = Version(pyspark.__version__) >= Version("4.3")

JOBS: dict[str, dict[str, Any]] = {
    "the sink": {"by": "sink"},
    # By default a partition may send its share, and the server does not tell how many partitions there are.
    "the driver alone": {"by": "foreachBatch", "options": {"driver.bytes": 1 << 30}},
    "tasks": {"by": "foreachBatch", "options": {"driver.rows": 0}},
    "without a clone": {"by": "foreachBatch", "options": {"driver.rows": 0}, "settings": {CLONED: "false"}},
}


def test_queries_and_their_restarts(bootstrap, tmp_path):
    """The second start repeats a batch that is committed, and goes on from the checkpoint; the third has nothing."""
    jobs = {
        name: {
            "bootstrap": bootstrap,
            "source": new_topic(bootstrap, 2),
            "sink": new_topic(bootstrap, 3),
            "limit": 400,
            "times": 2 if given["by"] == "sink" else 3,
            "checkpoint": str(tmp_path / name),
            "calls": str(tmp_path / f"{name}.calls"),
            **given,
        }
        for name, given in JOBS.items()
        if "settings" not in given or HAS_CLONES
    }
    for job in jobs.values():
        fill(bootstrap, job["source"], range(1000))
    command = [sys.executable, "-m", "tests.spark.remote_pipeline", json.dumps([*jobs.values()])]
    # With SPARK_TESTING a local server takes a free port, not port 15002, which another program may have.
    environment = os.environ | quick_environment() | {"SPARK_TESTING": "1"}
    with (tmp_path / "output").open("wb") as output, (tmp_path / "log").open("wb") as log:
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=output, stderr=log, timeout=240, check=False)
    assert done.returncode == 0, (tmp_path / "log").read_text()[-6000:]
    runs = iter([json.loads(line) for line in (tmp_path / "output").read_text().splitlines()])
    for name, job in jobs.items():
        *earlier, last = itertools.islice(runs, job["times"])
        assert sum(last["rows"]) == 0
        check_exactly(bootstrap, job["sink"], range(1000))
        if job["by"] == "sink":
            assert sum(earlier[0]["rows"]) == 1000
            continue
        calls = [json.loads(line) for line in Path(job["calls"]).read_text().splitlines()]
        assert [call["batch"] for call in calls] == [0, 1, 1, 2]
        assert [call["replayed"] for call in calls] == [False, False, True, False]
        assert {call["alone"] for call in calls if not call["replayed"]} == {name == "the driver alone"}
        is_clone = {call["session"] != last["session"] for call in calls}
        assert is_clone == {HAS_CLONES and name != "without a clone"}
    assert next(runs, None) is None
