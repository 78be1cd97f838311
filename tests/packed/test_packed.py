"""Executors whose Python has no exacta: it travels with the job, as an archive of a virtual environment.

As `docs/how-to/clusters.md` has it: packed by venv-pack, sent by `--archives`, unpacked by Spark in the working
directory of each executor, used by `PYSPARK_PYTHON=./environment/bin/python`. The cluster is Spark's `local-cluster`: a
master and a worker, with executors in processes of their own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packed.conftest import ENVIRONMENT
from tests.spark.clusters import a_cluster, check_exactly, new_topic
from tests.spark.queries import fill

HERE = Path(__file__).parent
JOB_TIMEOUT_S = 240


@pytest.fixture(scope="module")
def environment():
    assert ENVIRONMENT is not None
    return Path(ENVIRONMENT).absolute()


@pytest.fixture(scope="module")
def archive(environment, tmp_path_factory):
    """Pack the environment, by the command of the how-to."""
    packed = tmp_path_factory.mktemp("archive") / "environment.tar.gz"
    subprocess.run([environment / "bin" / "venv-pack", "-q", "-p", environment, "-o", packed], check=True)
    return packed


def test_the_interpreter_behind_the_environment_lacks_exacta(environment):
    """So what the executors find can only have come with the archive."""
    interpreter = os.path.realpath(environment / "bin" / "python")
    done = subprocess.run([interpreter, "-c", "import exacta"], capture_output=True, text=True, check=False, cwd="/")
    assert "No module named 'exacta'" in done.stderr


@pytest.mark.timeout(300)
def test_exacta_travels_with_the_job(environment, archive, tmp_path):
    with a_cluster() as bootstrap:
        source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 2)
        fill(bootstrap, source, range(1000))
        # On the driver the same relative path must lead to the same packages: Spark runs the planning there.
        (tmp_path / "environment").symlink_to(environment)
        arguments = {
            "bootstrap": bootstrap,
            "source": source,
            "sink": sink,
            "archive": str(archive),
            "found": str(tmp_path / "found"),
            "checkpoint": str(tmp_path / "checkpoint"),
        }
        with (tmp_path / "log").open("wb") as log:
            done = subprocess.run(
                [sys.executable, str(HERE / "job.py"), json.dumps(arguments)],
                cwd=tmp_path,
                env={**os.environ, "PYSPARK_PYTHON": "./environment/bin/python", "SPARK_LOCAL_IP": "127.0.0.1"},
                stdout=log,
                stderr=log,
                timeout=JOB_TIMEOUT_S,
                check=False,
            )
        assert done.returncode == 0, (tmp_path / "log").read_text()[-6000:]
        prefix, module, directory = json.loads((tmp_path / "found").read_text())
        assert Path(directory) != tmp_path
        assert Path(module).is_relative_to(directory), "imported from elsewhere than the unpacked archive"
        assert Path(prefix).is_relative_to(directory)
        check_exactly(bootstrap, sink, range(1000))
