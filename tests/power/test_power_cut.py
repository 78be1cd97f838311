"""Power cuts under a real server with real clients: what was committed is there, once and whole, and nothing else."""

import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.brokers import HOST, BrokerProcess, free_port
from tests.power.cut import cut
from tests.spark.clusters import read_committed

CUTS = int(os.environ.get("EXACTA_TEST_POWER_CUTS", "4"))
PRODUCERS = 3
PARTITIONS = 4
CALL_S = 60


class Machine(BrokerProcess):
    """A server on a machine that can lose power."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._boots = count(1)
        super().__init__([], free_port(), folder / "log")

    def start(self) -> None:
        self._notes = self._folder / "undo"
        program = [sys.executable, "-m", "tests.power.lossy", str(self._notes), f"boot {next(self._boots)}"]
        self._command = [*program, "serve", "--data", str(self._folder / "data"), "--listen", f"{HOST}:{self.port}"]
        super().start()

    def lose_power(self, chance: random.Random) -> int:
        """Kill the server, forget some of what was not synced, start again; return how many sectors are lost."""
        self.kill()
        lost = cut(self._folder / "data" / "journal", self._notes, chance)
        self.start()
        return lost


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    machine.start()
    yield machine
    machine.stop()


class Worker:
    """One transactional producer, and what it knows of its transactions."""

    def __init__(self, bootstrap: str, number: int, acknowledged: threading.Semaphore) -> None:
        self.committed: list[set[bytes]] = []
        self.unknown: list[set[bytes]] = []
        """It asked for a commit, and has no answer that says what became of it."""
        self._settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"worker-{number}",
            "transaction.timeout.ms": 60_000,
            "metadata.recovery.strategy": "none",
            "linger.ms": 0,
            "log_level": 0,
            "error_cb": lambda error: None,  # else it is raised in the midst of another callback
        }
        self._number = number
        self._acknowledged = acknowledged
        self._chance = random.Random(number)
        self._producer: Producer | None = None

    def run(self, stop: threading.Event) -> None:
        """Make transactions until told to stop."""
        for number in count():
            if stop.is_set():
                return
            records = {f"{self._number}-{number}-{part}".encode() for part in range(self._chance.randint(2, 12))}
            try:
                self._transact(records)
            except KafkaException as error:
                self._give_up(error.args[0])
            except SystemError:  # a fatal error, raised within the callback of a delivery
                self._producer = None

    def _transact(self, records: set[bytes]) -> None:
        if self._producer is None:
            self._producer = Producer(self._settings)
            self._producer.init_transactions(CALL_S)
        producer = self._producer
        producer.begin_transaction()
        for record in sorted(records):
            producer.produce("t", record, partition=self._chance.randrange(PARTITIONS), on_delivery=self._delivered)
            producer.flush(CALL_S)
        try:
            producer.commit_transaction(CALL_S)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():  # else it was refused, and has not been committed
                self.unknown.append(records)
            raise
        self.committed.append(records)

    def _delivered(self, error: KafkaError | None, message: object) -> None:
        if error is None:
            self._acknowledged.release()

    def _give_up(self, error: KafkaError) -> None:
        if error.txn_requires_abort() and self._producer is not None:
            with suppress(KafkaException):
                self._producer.abort_transaction(CALL_S)
                return
        self._producer = None


@pytest.mark.timeout(120 + 30 * CUTS)
def test_what_was_committed_survives_power_cuts_and_nothing_else_does(machine: Machine) -> None:
    admin = AdminClient({"bootstrap.servers": machine.bootstrap})
    admin.create_topics([NewTopic("t", PARTITIONS)])["t"].result(CALL_S)
    acknowledged, stop, chance = threading.Semaphore(0), threading.Event(), random.Random(CUTS)
    workers = [Worker(machine.bootstrap, number, acknowledged) for number in range(PRODUCERS)]
    threads = [threading.Thread(target=worker.run, args=(stop,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    lost = 0
    for _ in range(CUTS):
        for _ in range(chance.randint(30, 150)):
            assert acknowledged.acquire(timeout=CALL_S)
        lost += machine.lose_power(chance)
    for _ in range(50):
        assert acknowledged.acquire(timeout=CALL_S)
    stop.set()
    for thread in threads:
        thread.join(CALL_S)
        assert not thread.is_alive()
    for number in range(PRODUCERS):  # whatever is still open is aborted
        successor = Producer({"bootstrap.servers": machine.bootstrap, "transactional.id": f"worker-{number}"})
        successor.init_transactions(CALL_S)

    found = Counter(value for _, _, value in read_committed(machine.bootstrap, "t", settled=False))
    assert max(found.values()) == 1, "nothing twice"
    for worker in workers:
        for records in worker.committed:
            assert records <= found.keys(), "nothing lost"
        for records in worker.unknown:
            assert not records & found.keys() or records <= found.keys(), "nothing torn"
    known = set().union(*(records for worker in workers for records in (*worker.committed, *worker.unknown)))
    assert found.keys() <= known, "nothing that was not committed"
    assert all(worker.committed for worker in workers)
    assert lost, "or no power cut had anything to take"
