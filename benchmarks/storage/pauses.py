"""The time that a producer waits beside the freeing of space: `python -m benchmarks.storage.pauses [--seconds N]`.

One producer sends a message each 4 ms and waits for its acknowledgement, due times fixed beforehand. Beside it another
process writes 8 MB a second into two topics. By turns these keep everything; keep everything beside a process that
only computes, at low priority, for as much of a core as the freeing of space takes; and are compacted and cut to a few
megabytes, which rewrites and removes files all the time. So it shows what the machine itself does to the producer.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import clients
from benchmarks.brokers import served
from benchmarks.figures import percentile
from benchmarks.kafka.distribution import CACHE
from benchmarks.machine import facts
from exacta.adapters.local.child_process import NICENESS

EVERY_S = 0.004
WARM_UP_S = 10.0
SECONDS = 30.0
RECORD_BYTES = 1_000
RECORDS_PER_STEP = 160
STEP_S = 0.02
KEYS = 20_000
LONG_MS = 10.0
COMPUTES_S = 0.25

OPTIONS = {
    "log.segment.bytes": 32 << 20,
    "log.retention.check.interval.ms": 500,
    "log.cleaner.backoff.ms": 500,
}
KEEPING: dict[str, dict[str, str]] = {"compacted": {}, "short": {}}
FREEING: dict[str, dict[str, str]] = {
    "compacted": {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.1",
        "segment.ms": "1000",
        "max.compaction.lag.ms": "2000",
    },
    "short": {"retention.bytes": str(8 << 20)},
}


def main() -> int:
    """Measure by turns, of each kind; print a line for each turn."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storage.pauses", description="Measure pauses.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of each turn (default: {SECONDS:.0f})")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each kind (default: 3)")
    parser.add_argument("--work", type=Path, default=CACHE, help="folder for the data (default: .cache/)")
    options = parser.parse_args()
    options.work.mkdir(exist_ok=True)
    print("\n".join(facts(options.work)))
    for _ in range(options.rounds):
        for name, topics, computes in (
            ("keeps all", KEEPING, False),
            ("keeps all, others compute", KEEPING, True),
            ("frees", FREEING, False),
        ):
            with (
                tempfile.TemporaryDirectory(prefix="pauses-", dir=options.work) as folder,
                _computing() if computes else contextlib.nullcontext(),
            ):
                print(f"{name:26}{_turn(Path(folder), topics, options.seconds)}", flush=True)
    return 0


@contextlib.contextmanager
def _computing() -> Iterator[None]:
    """Let another process compute for half of the time, at the niceness of those that free space."""
    with subprocess.Popen([sys.executable, "-m", "benchmarks.storage.pauses", "compute"]) as computing:
        try:
            yield
        finally:
            computing.kill()


def _turn(folder: Path, topics: dict[str, dict[str, str]], seconds: float) -> str:
    with served(folder / "data", folder / "log", OPTIONS) as broker:
        broker.wait_until_ready()
        admin = AdminClient(clients.settings(broker.bootstrap))
        made = [NewTopic("watched", 1, 1), *(NewTopic(topic, 1, 1, config=each) for topic, each in topics.items())]
        for created in admin.create_topics(made).values():
            created.result(clients.ADMIN_TIMEOUT_S)
        writing = [sys.executable, "-m", "benchmarks.storage.pauses", "write", broker.bootstrap]
        with subprocess.Popen(writing) as writer:
            try:
                _waits_ms(broker.bootstrap, WARM_UP_S)
                before = broker.usage()
                waits = _waits_ms(broker.bootstrap, seconds)
                after = broker.usage()
            finally:
                writer.kill()
        kept = sum(path.stat().st_size for path in (folder / "data" / "journal").iterdir())
    assert before is not None
    assert after is not None
    long = sum(each > LONG_MS for each in waits)
    return (
        f"p50 {percentile(waits, 50):.2f}, p99 {percentile(waits, 99):.2f}, p99.9 {percentile(waits, 99.9):.2f}, "
        f"longest {waits[-1]:.1f} ms; {long} of {len(waits)} above {LONG_MS:.0f} ms; "
        f"on disk {kept / 1e6:.0f} MB; broker's CPU {after.cpu_s - before.cpu_s:.1f} s"
    )


def _waits_ms(bootstrap: str, seconds: float) -> Sequence[float]:
    """Send one message after another; return how long after its due time each was acknowledged, ascending."""
    producer = Producer(clients.settings(bootstrap, linger_ms=0, acks="all"))
    waits: list[float] = []
    errors: list[KafkaError] = []
    begun_s = time.monotonic()
    for number in range(int(seconds / EVERY_S)):
        due_s = begun_s + number * EVERY_S
        time.sleep(max(0.0, due_s - time.monotonic()))
        producer.produce("watched", b"x" * 100, on_delivery=lambda error, _: errors.append(error) if error else None)
        if producer.flush(clients.TRANSACTION_TIMEOUT_S):
            raise clients.DeliveryFailedError("a message was not acknowledged")
        waits.append((time.monotonic() - due_s) * 1e3)
    if errors:
        raise clients.DeliveryFailedError(str(errors[0]))
    return sorted(waits)


def write(bootstrap: str) -> None:
    """Write to both topics at a fixed rate until killed."""
    chance = random.Random(1)
    producer = Producer(clients.settings(bootstrap, linger_ms=5))
    value = chance.randbytes(RECORD_BYTES)
    due_s = time.monotonic()
    while True:
        for number in range(RECORDS_PER_STEP):
            key = b"%d" % chance.randrange(KEYS)
            producer.produce("compacted" if number % 2 else "short", value, key)
        producer.poll(0)
        due_s += STEP_S
        time.sleep(max(0.0, due_s - time.monotonic()))


def compute() -> None:
    """Compute for half of the time until killed."""
    os.nice(NICENESS)
    while True:
        begun_s = time.monotonic()
        while time.monotonic() - begun_s < COMPUTES_S:
            pass
        time.sleep(COMPUTES_S)


if __name__ == "__main__":
    if sys.argv[1:2] == ["compute"]:
        compute()
    if sys.argv[1:2] == ["write"]:
        write(sys.argv[2])
    sys.exit(main())
