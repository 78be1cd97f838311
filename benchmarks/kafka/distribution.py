"""Fetch the jars of one Apache Kafka release, once, into the project's cache.

Maven resolves what a node needs (`pom.xml`) and copies it into `.cache/kafka-VERSION/`. Only `java` and `mvn` are
needed.
"""

import shutil
import subprocess
from pathlib import Path

from benchmarks.maven import JarsUnavailableError, fetch_jars

KAFKA_VERSION = "4.4.0"
LOG4J_VERSION = "2.25.1"
CACHE = Path(__file__).resolve().parents[2] / ".cache"
FIRST_JAVA = 17
"""Kafka 4 brokers run on Java 17 and later."""


class KafkaUnavailableError(Exception):
    """Say in one line why Apache Kafka cannot be run here."""


def java_version(banner: str) -> int | None:
    """Read the major version from what `java -version` prints, or None where it cannot be read."""
    _, quote, rest = banner.partition('"')
    major = rest.split(".")[0].split('"')[0].split("-")[0]
    return int(major) if quote and major.isdecimal() else None


def java_banner() -> str:
    """Return the first line of `java -version`; raises KafkaUnavailableError without a Java that runs Kafka."""
    java = shutil.which("java")
    if java is None:
        raise KafkaUnavailableError(f"Apache Kafka needs java (version {FIRST_JAVA} or later) in PATH: none found")
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    banner = (printed.stderr or printed.stdout).partition("\n")[0].strip()
    version = java_version(banner)
    if version is None or version < FIRST_JAVA:
        raise KafkaUnavailableError(
            f"Apache Kafka needs java {FIRST_JAVA} or later in PATH: found {banner or 'none that runs'}"
        )
    return banner


def fetch(cache: Path = CACHE, version: str = KAFKA_VERSION) -> Path:
    """Return the folder with the release's jars, fetching them first if they are not there.

    Raises KafkaUnavailableError, in one line, when Java or Maven is missing or Maven fails.
    """
    java_banner()
    versions = {"kafka.version": version, "log4j.version": LOG4J_VERSION}
    pom, folder = Path(__file__).with_name("pom.xml"), cache / f"kafka-{version}"
    try:
        return fetch_jars(f"Apache Kafka {version}", pom, folder, versions)
    except JarsUnavailableError as error:
        raise KafkaUnavailableError(str(error)) from error
