"""A worker's heap: what a task needs is taken from the garbage collector's sight, in Spark's workers only."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import gc
from exacta.client.security import Cluster
from exacta.spark.clients import client_of

frozen = []
for _ in range(3):
    client_of(Cluster(bootstrap="127.0.0.1:1"))
    frozen.append(gc.get_freeze_count())
print(*frozen)
"""


@pytest.mark.parametrize("worker", [True, False])
def test_a_worker_settles_its_heap_once(worker):
    environment = {**os.environ, **({"PYTHON_WORKER_FACTORY_PORT": "1"} if worker else {})}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    first, second, third = map(int, done.stdout.split())
    assert first == 0  # a task has not been run yet, so not all is imported
    assert second == third  # what was made later is not held for ever
    assert (second > 1_000) == worker
