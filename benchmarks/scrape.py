"""The cost of one scrape of `/metrics` with ten thousand series: processor time, duration, and what clients notice.

Run `python -m benchmarks.scrape`. The broker has 2,000 topics that were written to (four series each), and 1,000 groups
(three each). Beside the scrapes one client asks for the broker's versions again and again; its slowest answers show how
long a scrape holds up the event loop.
"""

import socket
import struct
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from statistics import median

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from benchmarks import clients
from benchmarks.processes import Server, accepts_connections, free_ports, serving, usage

TOPICS = 2_000
GROUPS = 1_000
SCRAPES = 20


class Asking:
    """A client that asks for the versions, one request at a time, and keeps how long the answers took."""

    _ASKED = struct.pack(">ihhih", 10, 18, 0, 1, -1)

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._has_ended = threading.Event()
        self.seconds: list[float] = []
        self._thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        while not self._has_ended.is_set():
            began = time.perf_counter()
            self._socket.sendall(self._ASKED)
            (size,) = struct.unpack(">i", self._socket.recv(4, socket.MSG_WAITALL))
            self._socket.recv(size, socket.MSG_WAITALL)
            self.seconds.append(time.perf_counter() - began)
            time.sleep(0.001)

    def __enter__(self) -> "Asking":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._has_ended.set()
        self._thread.join()
        self._socket.close()


def _fill(bootstrap: str) -> None:
    producer = clients.plain_producer(bootstrap)
    for number in range(TOPICS):
        for _ in range(10):
            producer.produce(f"topic-{number}", b"x" * 100)
        producer.poll(0)
    producer.flush()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for number in range(GROUPS):
        place = TopicPartition(f"topic-{number}", 0, 5)
        [done] = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(f"group-{number}", [place])]).values()
        done.result()


def _measure(server: Server, kafka_port: int, url: str) -> None:
    def cpu_s() -> float:
        used = usage(server.process)
        assert used is not None
        return used.cpu_s

    def scrape() -> bytes:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return bytes(answer.read())

    text = scrape()
    series = sum(1 for line in text.splitlines() if not line.startswith(b"#"))
    with Asking(kafka_port) as quiet:
        time.sleep(2)
    durations = []
    with Asking(kafka_port) as beside:
        idle_before = cpu_s()
        time.sleep(2)
        before = cpu_s()
        for _ in range(SCRAPES):
            began = time.perf_counter()
            scrape()
            durations.append(time.perf_counter() - began)
        after = cpu_s()
    idle_per_s = (before - idle_before) / 2
    cpu = (after - before - idle_per_s * sum(durations)) / SCRAPES
    sys.stdout.write(
        f"{series} series, {len(text) / 1e6:.1f} MB: {cpu * 1000:.0f} ms of processor time, "
        f"{median(durations) * 1000:.0f} ms from the request to the whole answer "
        f"({min(durations) * 1000:.0f} to {max(durations) * 1000:.0f})\n"
    )
    for name, asking in (("without scrapes", quiet), ("beside scrapes", beside)):
        answers = sorted(asking.seconds)
        sys.stdout.write(
            f"{name}: an answer takes {median(answers) * 1000:.2f} ms, "
            f"{answers[int(len(answers) * 0.99)] * 1000:.1f} ms in 1 of 100, at most {answers[-1] * 1000:.1f} ms\n"
        )


def main() -> None:
    """Measure and print."""
    kafka_port, web_port = free_ports(2)
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("exacta")), "serve", "--data", f"{folder}/data"]
        command += ["--listen", f"127.0.0.1:{kafka_port}", "--web-listen", f"127.0.0.1:{web_port}"]
        command += ["--set", f"web.metrics.max.series={TOPICS}", "--set", "num.partitions=1"]
        with serving(command, Path(folder) / "log") as server:
            server.wait_until(lambda: accepts_connections("127.0.0.1", kafka_port), 30)
            _fill(f"127.0.0.1:{kafka_port}")
            _measure(server, kafka_port, f"http://127.0.0.1:{web_port}/metrics")


if __name__ == "__main__":
    main()
