"""A batch that is under way when its query ends, of whatever cause, leaves nothing that holds readers back."""

import subprocess
import sys

import pytest

from tests.spark.clusters import held_back, new_topic, read_committed
from tests.spark.lives import wait_until
from tests.spark.queries import fill

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def topics(bootstrap):
    source, sink = new_topic(bootstrap, 1), new_topic(bootstrap, 2)
    fill(bootstrap, source, range(100))
    return source, sink


def begin(bootstrap, topics, directory, how):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.ending", bootstrap, *topics, str(directory), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("how", "code"), [("another fails", 1), ("session", 0), ("exit", 3)])
def test_a_job_that_ends_leaves_nothing_open(bootstrap, topics, tmp_path, how, code):
    job = begin(bootstrap, topics, tmp_path, how)
    _, told = job.communicate(timeout=200)
    assert job.returncode == code, told
    # Apache Kafka answers an EndTxn before its markers are everywhere.
    wait_until(lambda: held_back(bootstrap, topics[1]) == {}, "nothing is held back", 10)
    assert read_committed(bootstrap, topics[1]) == []


def test_a_query_that_is_stopped_in_a_session_that_lives_on(bootstrap, topics, tmp_path):
    job = begin(bootstrap, topics, tmp_path, "query")
    try:
        assert job.stdout.readline() == "stopped\n"
        wait_until(lambda: held_back(bootstrap, topics[1]) == {}, "nothing is held back", 10)
    finally:
        job.communicate("", timeout=200)
