"""Fetch the jars of one Apache Pulsar release, once, into the project's cache, and compile the load.

Maven resolves what a standalone server and the Java client need (`pom.xml`) and copies it into
`.cache/pulsar-VERSION/`. A JDK of version 17 or later and `mvn` are needed.
"""

import shutil
import subprocess
from pathlib import Path

from benchmarks.kafka.distribution import CACHE, KafkaUnavailableError, java_banner
from benchmarks.maven import JarsUnavailableError, fetch_jars

PULSAR_VERSION = "4.2.4"
LOAD = Path(__file__).with_name("PulsarLoad.java")
LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
COMPILE_TIMEOUT_S = 300


class PulsarUnavailableError(Exception):
    """Say in one line why Apache Pulsar cannot be run here."""


def fetch(cache: Path = CACHE, version: str = PULSAR_VERSION) -> Path:
    """Return the folder with the release's jars, fetching them first if they are not there.

    Raises PulsarUnavailableError, in one line, when a JDK or Maven is missing or Maven fails.
    """
    try:
        java_banner()
        pom, folder = Path(__file__).with_name("pom.xml"), cache / f"pulsar-{version}"
        return fetch_jars(f"Apache Pulsar {version}", pom, folder, {"pulsar.version": version})
    except KafkaUnavailableError as error:
        raise PulsarUnavailableError(str(error).replace("Kafka", "Pulsar")) from error
    except JarsUnavailableError as error:
        raise PulsarUnavailableError(str(error)) from error


def compile_load(jars: Path, folder: Path) -> Path:
    """Compile the load into the folder, and return that; raises PulsarUnavailableError where there is no compiler."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise PulsarUnavailableError("the load of the benchmark needs javac, of a JDK, in PATH: none found")
    command = [compiler, "-cp", f"{jars}/*", "-d", str(folder), str(LOAD)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise PulsarUnavailableError(f"javac refuses {LOAD.name}: {done.stderr.strip().partition(chr(10))[0]}")
    return folder
