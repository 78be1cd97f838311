"""Get Spark's Kafka connector ready: its jars by Maven, and a jar of the stand-in for its token module by javac.

Owns one folder of jars in the project's cache, made whole or not at all. The connector's module for delegation tokens
is not on Maven Central for every release; `standin/` has the few signatures that the connector calls, without
authentication. Needs `mvn`, `javac` and `jar` (a JDK of version 17 or later) in PATH.
"""

import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

CONNECTOR_VERSION = "4.2.0"
"""The newest that Maven Central had; PySpark must be of the same version."""
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
ARTIFACTS = "spark-sql-kafka-0-10_2.13,kafka-clients,commons-pool2"
"""What Spark does not bring itself."""
FETCH_TIMEOUT_S = 900
HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache"


class ConnectorUnavailableError(Exception):
    """Say in one line why the connector cannot be had here."""


def connector_jars(spark_jars: Path, cache: Path = CACHE) -> list[Path]:
    """Return the connector's jars, making them first if they are not there; `spark_jars` is the folder of Spark's own.

    Raises ConnectorUnavailableError, in one line, where a tool or the right PySpark is missing or one fails.
    """
    if (found := version("pyspark")) != CONNECTOR_VERSION:
        raise ConnectorUnavailableError(
            f"Spark's Kafka connector {CONNECTOR_VERSION} needs PySpark of that version: {found}"
        )
    folder = cache / f"spark-connector-{CONNECTOR_VERSION}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="spark-connector-", dir=cache) as work:
            jars = Path(work) / "jars"
            _fetch(jars)
            _compile_standin(Path(work) / "classes", jars / "token-provider-standin.jar", spark_jars)
            jars.rename(folder)
    return sorted(folder.glob("*.jar"))


def _fetch(target: Path) -> None:
    command = ["mvn", "--batch-mode", "--quiet", "--file", str(HERE / "pom.xml"), COPY_DEPENDENCIES]
    command += [
        f"-DoutputDirectory={target}",
        f"-DincludeArtifactIds={ARTIFACTS}",
        f"-Dspark.version={CONNECTOR_VERSION}",
    ]
    _run(command, "Maven could not fetch Spark's Kafka connector")


def _compile_standin(classes: Path, target: Path, spark_jars: Path) -> None:
    sources = sorted(str(source) for source in (HERE / "standin").rglob("*.java"))
    _run(
        ["javac", "--release", "17", "-nowarn", "-d", str(classes), "-cp", f"{spark_jars}/*", *sources],
        "the stand-in for the connector's token module could not be compiled",
    )
    _run(["jar", "--create", "--file", str(target), "-C", str(classes), "."], "the stand-in could not be packed")


def _run(command: list[str], failure: str) -> None:
    if shutil.which(command[0]) is None:
        raise ConnectorUnavailableError(f"{failure}: no {command[0]} in PATH")
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line.lower()]
        raise ConnectorUnavailableError(f"{failure}: {(lines or ['no reason given'])[0]}")
