"""Fetch the jars of one Apache Kafka release, once, into the project's cache.

Maven resolves what a node needs (`pom.xml`) and copies it into `.cache/kafka-VERSION/`. The copy is made beside that
folder and renamed when whole, so that an interrupted fetch is never mistaken for a finished one. Only `java` and
`mvn` are needed.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

KAFKA_VERSION = "4.4.0"
LOG4J_VERSION = "2.25.1"
CACHE = Path(__file__).resolve().parents[2] / ".cache"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
FETCH_TIMEOUT_S = 900
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
    jars = cache / f"kafka-{version}"
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailableError("fetching Apache Kafka needs Maven (mvn) in PATH: none found")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kafka-", dir=cache) as work:
        target = Path(work) / "jars"
        command = [
            *(maven, "--batch-mode", "--quiet", "--file", str(Path(__file__).with_name("pom.xml")), COPY_DEPENDENCIES),
            *(f"-DoutputDirectory={target}", "-DincludeScope=runtime"),
            *(f"-Dkafka.version={version}", f"-Dlog4j.version={LOG4J_VERSION}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
        if done.returncode != 0:
            errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
            raise KafkaUnavailableError(
                f"Maven could not fetch Apache Kafka {version}: {(errors or ['no reason given'])[0]}"
            )
        try:
            target.rename(jars)
        except OSError:
            # Somebody else finished the same fetch first; theirs is as good as ours.
            if not jars.is_dir():
                raise
    return jars
