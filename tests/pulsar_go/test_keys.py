"""The client for Go places equal keys as docs/how-to/keys-and-partitions.md says; tests/one_log/ has other clients."""

import subprocess
from pathlib import Path

import pytest

import exacta
from tests.one_log.keys import KAFKA, KEYS, PULSAR, create, placed, printed, wanted

TIMEOUT_S = 60


def sent(broker: exacta.Broker, program: Path, way: str) -> dict[str, set[int]]:
    """Send all keys in one of the program's ways; return where they are."""
    create(broker.bootstrap_servers, "orders")
    subprocess.run([program, "keys", broker.pulsar_url, "orders", way, ",".join(KEYS)], check=True, timeout=TIMEOUT_S)
    return placed(broker.bootstrap_servers, "orders", [way])[way]


@pytest.mark.parametrize(("way", "option"), [(KAFKA, "asKafka"), (PULSAR, "Murmur3_32Hash")])
def test_equal_keys_are_placed_as_other_clients_place_them(program: Path, way: str, option: str) -> None:
    source = Path(__file__).with_name("pipeline") / "keys.go"
    assert printed("go", "func asKafka").text in source.read_text()
    with exacta.Broker(pulsar=True) as broker:
        assert sent(broker, program, option) == wanted(way)


def test_its_own_hash_is_nobody_elses(program: Path) -> None:
    with exacta.Broker(pulsar=True) as broker:
        found = sent(broker, program, "by default")
    hashes = dict.fromkeys(KEYS, 0)
    for key in KEYS:
        for byte in key.encode():
            hashes[key] = (31 * hashes[key] + byte) & 0xFFFFFFFF
    assert found == {key: {hashed % 5} for key, hashed in hashes.items()}
    assert found != {key: {(hashed & 0x7FFFFFFF) % 5} for key, hashed in hashes.items()}
