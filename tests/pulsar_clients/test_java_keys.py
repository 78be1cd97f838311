"""Both clients for Java place equal keys as docs/how-to/keys-and-partitions.md says, by its classes as printed."""

import base64
import subprocess
from collections.abc import Callable
from pathlib import Path

import mmh3
import pytest

from tests.one_log.keys import KAFKA, KEYS, PARTITIONS, PULSAR, create, placed, printed, wanted
from tests.pulsar_clients.brokers import ON_PULSAR, Given
from tests.pulsar_clients.java import both_clients

pytestmark = pytest.mark.skipif(ON_PULSAR, reason="it takes Kafka's clients, too")
TIMEOUT_S = 120
GUAVA = "com.google.common"


def hash_code(text: str) -> int:
    """Return Java's hash of a text, of its 16-bit units."""
    hashed = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return hashed


def by(hashed: Callable[[str], int]) -> dict[str, set[int]]:
    return {key: {(hashed(key) & 0x7FFFFFFF) % PARTITIONS} for key in KEYS}


WAYS = {
    "kafka by default": wanted(KAFKA),
    "pulsar AsKafka": wanted(KAFKA),
    "pulsar AsKafka, bytes": wanted(KAFKA),
    "kafka AsPulsar": wanted(PULSAR),
    "pulsar Murmur3_32Hash": wanted(PULSAR),
    # The page says so: this client hashes the base64, and by default it hashes the text otherwise.
    "pulsar Murmur3_32Hash, bytes": by(lambda key: mmh3.hash(base64.b64encode(key.encode()))),
    "pulsar by default": by(hash_code),
}


def test_equal_keys_are_placed_as_other_clients_place_them(given: Given, topic: str, tmp_path: Path) -> None:
    assert given.bootstrap is not None
    class_path = ":".join(map(str, [tmp_path, *both_clients()]))
    for name in ("AsKafka", "AsPulsar"):
        # Pulsar's client has Guava within, under another name.
        text = printed("java", f"class {name} ").text.replace(GUAVA, f"org.apache.pulsar.shade.{GUAVA}")
        (tmp_path / f"{name}.java").write_text(text)
    sources = [Path(__file__).with_name("Keys.java"), *tmp_path.glob("*.java")]
    compiling = ["javac", "--release", "17", "-d", str(tmp_path), "-cp", class_path, *map(str, sources)]
    subprocess.run(compiling, check=True, timeout=TIMEOUT_S)
    create(given.bootstrap, topic)
    running = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", class_path, "Keys", given.bootstrap, given.url]
    ran = subprocess.run(
        [*running, topic, ",".join(KEYS), *WAYS], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert placed(given.bootstrap, topic, WAYS) == WAYS
