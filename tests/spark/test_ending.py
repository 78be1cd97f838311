"""A batch that is under way when its query ends, of whatever cause, leaves nothing that holds readers back."""

import os
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.spark.clusters import held_back, new_topic, read_committed
from tests.spark.ending import start_and_stand_still
from tests.spark.lives import wait_until
from tests.spark.queries import fill, reading
from tests.spark.quick_java import quick_environment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def topics(bootstrap):
    source, sink = new_topic(bootstrap, 1), new_topic(bootstrap, 2)
    fill(bootstrap, source, range(100))
    return source, sink


@pytest.mark.parametrize(("how", "code"), [("another fails", 1), ("session", 0), ("exit", 3)])
def test_a_job_that_ends_leaves_nothing_open(bootstrap, topics, tmp_path, how, code):
    command = [sys.executable, "-m", "tests.spark.ending", bootstrap, *topics, str(tmp_path), how]
    environment = os.environ | quick_environment()
    job = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert job.returncode == code, job.stderr
    # Apache Kafka answers an EndTxn before its markers are everywhere.
    wait_until(lambda: held_back(bootstrap, topics[1]) == {}, "nothing is held back", 10)
    assert read_committed(bootstrap, topics[1]) == []


def test_a_query_that_is_stopped_in_a_session_that_lives_on(spark, bootstrap, topics, tmp_path):
    source, sink = topics
    rows = reading(spark, bootstrap, source).select("key", "value")
    # Spark cancels the query's job, and then interrupts the query's thread. The interrupt may come so late that it hits
    # the abort, which the failed job has begun. Spark gives that abort up, and the query's next start makes up for it.
    for _ in range(3):
        start_and_stand_still(rows, bootstrap, sink, tmp_path).stop()
        with suppress(TimeoutError):
            wait_until(lambda: held_back(bootstrap, sink) == {}, "nothing is held back", 10)
            break
    assert held_back(bootstrap, sink) == {}
    assert read_committed(bootstrap, sink) == []
    assert spark.range(3).count() == 3
