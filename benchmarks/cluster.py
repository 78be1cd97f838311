"""Several brokers over one PostgreSQL beside one broker with a disk: `python -m benchmarks.cluster`.

Three parts, each with one client: the rate of transactions, by turns with a broker that keeps its log in a directory;
the time without service after the leader was killed or paused; and how far a follower is behind its leader. PostgreSQL
is the one that `exacta demo --brokers` starts, on this machine, without a standby.
"""

import argparse
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.figures import percentile
from benchmarks.machine import facts
from exacta.demo.brokers import Brokers
from exacta.demo.processes import BrokerProcess, free_port

TOPIC = "t"
PAUSE_S = 5.0
SENT_EVERY_S = 0.002
WITHIN_S = 30.0
QUIET = {"log_level": 0}
PRODUCER = QUIET | {"linger.ms": 0, "socket.timeout.ms": 2_000, "request.timeout.ms": 2_000, "retry.backoff.ms": 20}


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Return the median of some values, and the least and the most of them."""
    middle, least, most = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least} to {most})"


def leading(servers: str) -> int | None:
    """Return the node id of the broker that leads, by one of these; None: nobody does."""
    try:
        found = AdminClient({"bootstrap.servers": servers, **QUIET}).list_topics(timeout=5).controller_id
    except KafkaException:
        return None
    return int(found) if found >= 0 else None


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds. Raises TimeoutError."""
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{holds} does not hold")
        time.sleep(0.01)


@contextmanager
def cluster(count: int, work: Path) -> Iterator[Brokers]:
    """Run brokers over a PostgreSQL of their own, with the topic."""
    brokers = Brokers(count, work, for_pulsar=False)
    try:
        brokers.start()
        until(lambda: leading(brokers.bootstrap_servers) is not None)
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers, **QUIET})
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(WITHIN_S)
        yield brokers
    finally:
        brokers.stop()


# --- transactions -----------------------------------------------------------------------------------------------------


def transactions(servers: str, seconds: float) -> float:
    """Return the transactions of one record that one producer commits in a second."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"x-{time.time_ns()}", **QUIET})
    producer.init_transactions(WITHIN_S)
    count, begun = -20, time.monotonic()
    while count < 0 or time.monotonic() - begun < seconds:
        if count == 0:
            begun = time.monotonic()
        producer.begin_transaction()
        producer.produce(TOPIC, b"v" * 100)
        producer.commit_transaction(WITHIN_S)
        count += 1
    return count / (time.monotonic() - begun)


def measure_transactions(rounds: int, seconds: float, work: Path) -> None:
    """Print the rates, by turns."""
    alone = BrokerProcess(work / "alone", free_port(), work / "alone.log")
    alone.start()
    try:
        until(lambda: leading(alone.bootstrap_servers) is not None)
        with cluster(2, work) as brokers:
            rates: dict[str, list[float]] = {"in a directory": [], "in PostgreSQL": []}
            for _ in range(rounds):
                rates["in a directory"].append(transactions(alone.bootstrap_servers, seconds))
                rates["in PostgreSQL"].append(transactions(brokers.bootstrap_servers, seconds))
        for where, found in rates.items():
            print(f"txn-1, log {where}: {spread(found, 0)} txn/s")
        ratios = [one / other for one, other in zip(rates["in PostgreSQL"], rates["in a directory"], strict=True)]
        print(f"txn-1, ratio: {spread(ratios, 2)}")
    finally:
        alone.stop()


# --- time without service ---------------------------------------------------------------------------------------------


class Sending:
    """An idempotent producer that sends all the time, and notes when what was acknowledged."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **PRODUCER})
        self.acknowledged: list[tuple[float, float]] = []
        """When each record was sent, and acknowledged."""
        self.failed = 0

    def send_for(self, seconds: float) -> None:
        """Send for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            at = time.monotonic()
            self._producer.produce(TOPIC, b"v" * 100, on_delivery=lambda error, _, at=at: self._told(error, at))
            self._producer.poll(SENT_EVERY_S)

    def _told(self, error: object, at: float) -> None:
        if error is not None:
            self.failed += 1
        else:
            self.acknowledged.append((at, time.monotonic()))

    def finish(self) -> None:
        """Wait for what is still on its way."""
        self._producer.flush(WITHIN_S)


def measure_absence(number: signal.Signals, rounds: int, work: Path) -> None:
    """Print how long nobody leads, and how long nothing is acknowledged, after a signal to the leader."""
    led, acknowledged, failed = [], [], 0
    with cluster(2, work) as brokers:
        for _ in range(rounds):
            until(lambda: leading(brokers.bootstrap_servers) is not None)
            leader = leading(brokers.bootstrap_servers)
            assert leader is not None
            victim, other = brokers.processes[leader - 1], brokers.processes[2 - leader]
            sending = Sending(brokers.bootstrap_servers)
            sending.send_for(1)
            os.kill(victim.process.pid, number)
            at = time.monotonic()
            until(lambda: leading(other.bootstrap_servers) == 3 - leader)  # noqa: B023  # it is called at once
            led.append(time.monotonic() - at)
            sending.send_for(max(0.0, PAUSE_S - led[-1]))
            if number == signal.SIGSTOP:
                os.kill(victim.process.pid, signal.SIGCONT)
            sending.finish()
            failed += sending.failed
            acknowledged.append(min(told for sent, told in sending.acknowledged if sent > at) - at)
            brokers.start()
            until(lambda: victim.exit_code() is None and leading(victim.bootstrap_servers) is not None)  # noqa: B023  # so is it
    print(f"{number.name} of the leader: another leads after {spread(led)} s (asked over and over by a client)")
    print(f"{number.name} of the leader: acknowledged again after {spread(acknowledged)} s; {failed} sends failed")


# --- a follower's lag -------------------------------------------------------------------------------------------------


def measure_lag(seconds: float, work: Path) -> None:
    """Print how long after its acknowledgement a record is read from a follower."""
    with cluster(2, work) as brokers:
        leader = leading(brokers.bootstrap_servers)
        assert leader is not None
        sending = Sending(brokers.bootstrap_servers)
        sending.send_for(0.5)
        sending.finish()
        for whom, rack in (("its leader", ""), ("a follower", f"rack-{3 - leader}")):
            lags = _lags(brokers.bootstrap_servers, rack, seconds)
            found = ", ".join(f"p{at:.0f} {1000 * percentile(sorted(lags), at):.1f}" for at in (50.0, 99.0))
            print(f"read from {whom} after the acknowledgement: {found} ms, of {len(lags)} records")


def _lags(servers: str, rack: str, seconds: float) -> list[float]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "g", "client.rack": rack, "fetch.wait.max.ms": 500, **QUIET}
    )
    consumer.assign([TopicPartition(TOPIC, 0, consumer.get_watermark_offsets(TopicPartition(TOPIC, 0))[1])])
    producer = Producer({"bootstrap.servers": servers, **PRODUCER})
    lags: list[float] = []
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        told: list[float] = []
        producer.produce(TOPIC, b"%d" % number, on_delivery=lambda error, _, told=told: told.append(time.monotonic()))
        producer.flush(WITHIN_S)
        while (message := consumer.poll(WITHIN_S)) is not None:
            if message.error() is None and message.value() == b"%d" % number:
                break
        lags.append(max(0.0, time.monotonic() - told[0]))
        number += 1
    consumer.close()
    return lags[len(lags) // 10 :]


def main() -> None:
    """Measure all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--part", action="append", choices=("transactions", "kill", "pause", "lag"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    parts = {
        "transactions": lambda work: measure_transactions(options.rounds, options.seconds, work),
        "kill": lambda work: measure_absence(signal.SIGKILL, options.rounds, work),
        "pause": lambda work: measure_absence(signal.SIGSTOP, options.rounds, work),
        "lag": lambda work: measure_lag(options.seconds, work),
    }
    print(*facts(Path(tempfile.gettempdir())), sep="\n")
    for name in options.part or parts:
        with tempfile.TemporaryDirectory() as work:
            parts[name](Path(work))


if __name__ == "__main__":
    main()
