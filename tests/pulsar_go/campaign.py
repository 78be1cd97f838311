"""A campaign: a client consumes, transforms and produces in transactions; it and the broker are killed now and then.

Numbers go in under a producer's name, so that each is there once. A client of another language takes them and sends
each on in a transaction, of which some are aborted. In the end an independent reader, which is a third client, must
find every number exactly once.
"""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pulsar

from exacta.demo.processes import free_port
from tests.pulsar.wire import client

INPUT, OUTPUT, SUBSCRIPTION = "numbers-in", "numbers-out", "pipeline"
A_STEP = 300
"""So many numbers go in between two kills."""
BETWEEN_SECONDS = (0.3, 2.0)
AFTER_CLIENT_SECONDS = 4.0
"""So long after a kill of the client the next one begins: the transaction that was left behind has timed out (3 s)."""
PATIENCE_SECONDS = 120.0
BROKER, CLIENT = "broker", "client"


class Campaign:
    """One broker and one pipeline, each a process that may be killed."""

    def __init__(self, folder: Path, command: Callable[[str], list[str]], seed: int) -> None:
        """`command` returns how the pipeline is started, given the broker's URL."""
        self._folder = folder
        self._command = command
        self._chance = random.Random(seed)
        self._port = free_port()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._sent = 0
        self.kills: Counter[str] = Counter()

    @property
    def url(self) -> str:
        """The broker's URL, in all of its lives."""
        return f"pulsar://127.0.0.1:{self._port}"

    def run(self, kills: int) -> None:
        """Let it go on over so many kills, and judge the results."""
        try:
            self._start(BROKER)
            self._start(CLIENT)
            for _ in range(kills):
                self._send()
                time.sleep(self._chance.uniform(*BETWEEN_SECONDS))
                self._kill(self._chance.choice([BROKER, CLIENT]))
            self._send()
            self._judge()
        finally:
            for process in self._processes.values():
                process.kill()
                process.communicate()

    # --- processes ----------------------------------------------------------------------------------------------------

    def _start(self, who: str) -> None:
        command = self._command(self.url)
        if who == BROKER:
            command = [sys.executable, "-m", "exacta.cli", "serve", "--data", str(self._folder / "data")]
            command += ["--listen", "127.0.0.1:0", "--pulsar-listen", f"127.0.0.1:{self._port}"]
        with (self._folder / f"{who}.log").open("a") as log:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE if who == BROKER else log, stderr=log, text=True, cwd=self._folder
            )
        self._processes[who] = process
        if who == BROKER:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(2)]  # Kafka's listener, and Pulsar's
            assert all("listening" in line for line in said), (self._folder / "broker.log").read_text()

    def _kill(self, who: str) -> None:
        process = self._processes.pop(who)
        assert process.poll() is None, f"the {who} has ended by itself: see {self._folder / who}.log"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.kills[who] += 1
        if who == CLIENT:
            time.sleep(AFTER_CLIENT_SECONDS)
        self._start(who)

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Send the next numbers, each until it is there."""
        with client(self.url) as opened:
            # In a transaction the client acknowledges anew what it has acknowledged before of the same batch.
            producer = opened.create_producer(INPUT, producer_name="numbers", batching_enabled=False)
            results: list[pulsar.Result] = []
            for number in range(self._sent, self._sent + A_STEP):
                producer.send_async(b"%d" % number, lambda result, message_id: results.append(result))
            producer.flush()
            assert results == [pulsar.Result.Ok] * A_STEP
        self._sent += A_STEP

    def _results(self) -> list[int]:
        """Return what readers of committed messages see now."""
        found = []
        with client(self.url) as opened:
            reader = opened.create_reader(OUTPUT, pulsar.MessageId.earliest)
            while reader.has_message_available():
                found.append(int(reader.read_next(20_000).data()))
        return found

    def _judge(self) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        results: list[int] = []
        while len(set(results)) < self._sent and time.monotonic() < until:
            time.sleep(0.5)
            results = self._results()
        self._processes[CLIENT].kill()
        time.sleep(AFTER_CLIENT_SECONDS)  # what it has left behind ends, and shows what it held back
        counts = Counter(self._results())
        assert sorted(counts) == list(range(self._sent)), f"missing: {sorted(set(range(self._sent)) - counts.keys())}"
        twice = sorted(number for number, count in counts.items() if count > 1)
        assert twice == []
        with client(self.url) as opened:
            consumer = opened.subscribe(INPUT, SUBSCRIPTION, consumer_type=self._type_of_the_subscription())
            try:
                left = consumer.receive(1000)
            except pulsar.Timeout:
                left = None
            assert left is None, f"{left.data()!r} is consumed, and delivered again"

    def _type_of_the_subscription(self) -> pulsar.ConsumerType:
        return pulsar.ConsumerType.Shared if "Shared" in self._command(self.url) else pulsar.ConsumerType.Failover
