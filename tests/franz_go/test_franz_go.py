"""franz-go against a broker: it writes, reads and asks, another client judges (`make test-with WHAT=go`)."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.conformance.brokers import ON_KAFKA
from tests.conformance.topics import Topics
from tests.one_log.keys import KAFKA, KEYS, PULSAR, create, placed, printed, wanted
from tests.spark.clusters import held_back, new_topic, on_marker_topics, read_committed

TIMEOUT_S = 120
COUNT = 5_000

pytestmark = pytest.mark.timeout(900)  # the first build compiles all of the library
Run = Callable[..., Any]


@pytest.fixture
def run(program: Path, bootstrap: str) -> Run:
    """Run a command and return what it tells, or None where that is nothing."""

    def run(command: str, *names: object) -> Any:
        done = subprocess.run(
            [program, command, bootstrap, *map(str, names)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None

    return run


def test_idempotent_producing(run: Run, bootstrap: str) -> None:
    topic = new_topic(bootstrap, 1)
    offsets = run("idempotent", topic, COUNT)
    assert sorted(offsets) == [*range(COUNT)]
    written = [int(value or b"") for _, _, value in read_committed(bootstrap, topic)]
    assert [written[offset] for offset in offsets] == [*range(COUNT)]
    assert run("read", topic, COUNT, "read_committed") == [str(value) for value in written]


@on_marker_topics
def test_transactions_and_what_is_asked_of_them(run: Run, bootstrap: str, name: str) -> None:
    topic = new_topic(bootstrap, 2)
    run("transactions", topic, name)
    assert sorted(run("read", topic, 4, "read_committed")) == ["c0", "c1", "c2", "c3"]
    assert sorted(run("read", topic, 7, "read_uncommitted")) == ["a0", "a1", "c0", "c1", "c2", "c3", "o0"]
    assert held_back(bootstrap, topic) == {0: (6, 7)}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    offsets = [TopicPartition(topic, 0, 2), TopicPartition(topic, 1, 6)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    assert run("admin", topic, name, name) == {
        "listed": "Ongoing",
        "described": "Ongoing",
        "partitions": {"0": {}},
        "open from": [6],
        "ends": [7, 6],
        "stable": [6, 6],
        "group": "Empty",
        "lag": 5,
    }


@pytest.mark.skipif(ON_KAFKA, reason="sidecar topics are Exacta's")
def test_an_open_transaction_of_a_sidecar_topic_is_shown_and_holds_no_reader_back(
    run: Run, bootstrap: str, name: str
) -> None:
    topic = Topics(bootstrap).create(name, 2, {"transaction.buffer": "sidecar"})
    run("transactions", topic, name)
    for isolation in ("read_committed", "read_uncommitted"):
        assert sorted(run("read", topic, 4, isolation)) == ["c0", "c1", "c2", "c3"]
    assert held_back(bootstrap, topic) == {}
    assert run("admin", topic, name, name) == {
        "listed": "Ongoing",
        "described": "Ongoing",
        "partitions": {"0": {}},
        "open from": [],
        "ends": [2, 2],
        "stable": [2, 2],
        "group": "Dead",
        "lag": 0,
    }


@pytest.mark.skipif(ON_KAFKA, reason="sidecar topics are Exacta's")
def test_a_staged_record_is_told_no_offset_that_looks_real(run: Run, bootstrap: str, name: str) -> None:
    """See decision 0042; the records are in one batch here, and in several ones."""
    topic = Topics(bootstrap).create(name, 1, {"transaction.buffer": "sidecar"})
    for count in (4, COUNT):
        told = run("staged", topic, name, count)
        assert max(told) < -1
        assert len(set(told)) == count
    everything = [*map(str, range(4)), *map(str, range(COUNT))]
    for isolation in ("read_committed", "read_uncommitted"):
        assert run("read", topic, len(everything), isolation) == everything


def test_a_predecessor_is_fenced(run: Run, bootstrap: str, name: str) -> None:
    topic = new_topic(bootstrap, 1)
    told = run("fence", topic, name)
    assert told["late"].startswith("INVALID_PRODUCER_EPOCH")
    assert told["ended"].startswith("OPERATION_NOT_ATTEMPTED")  # the library does not even ask
    assert [value for _, _, value in read_committed(bootstrap, topic)] == [b"successor"]


def test_topics(run: Run, name: str) -> None:
    told = run("topics", name)
    assert told.pop("again").startswith("TOPIC_ALREADY_EXISTS")
    assert told == {
        "altered": "",
        "added": "",
        "deleted": "",
        "low watermark": 3,
        "starts": [3, 0, 0],
        "max.message.bytes": "3000000",
    }


@pytest.mark.parametrize("way", [KAFKA, PULSAR])
def test_equal_keys_are_placed_as_other_clients_place_them(run: Run, bootstrap: str, name: str, way: str) -> None:
    """`docs/how-to/keys-and-partitions.md`; tests/one_log/test_keys.py has the others."""
    source = Path(__file__).with_name("keys.go").read_text()
    assert printed("go", "KafkaHasher").text.strip() in source
    create(bootstrap, name)
    hashing = {KAFKA: "by default", PULSAR: "murmur3"}[way]
    run("keys", name, hashing, ",".join(KEYS))
    assert placed(bootstrap, name, [hashing]) == {hashing: wanted(way)}
