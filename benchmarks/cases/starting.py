"""A broker's start, and what it holds in memory once it stands idle: cases that launch brokers of their own."""

import itertools
import statistics
import time
from collections.abc import Iterator

from benchmarks import clients
from benchmarks.brokers import Broker, Launcher
from benchmarks.figures import Figure

STARTS = 3
SETTLED_CHANGE = 0.01
SETTLE_STEP_S = 1.0
SETTLE_STEPS = 10
DELIVERY_TIMEOUT_S = 30.0


def start(launcher: Launcher, case: str) -> Iterator[Figure]:
    """Time from the start of the process on empty data to the first acknowledged message; the median of several."""
    seconds = [_first_acknowledgement_s(launcher) for _ in range(STARTS)]
    yield Figure(case=case, name="first ack s", value=statistics.median(seconds))


def idle_memory(launcher: Launcher, case: str) -> Iterator[Figure]:
    """Resident memory of a broker that has answered a client and then stood idle until its memory stood still."""
    with launcher.launch() as broker:
        broker.wait_until_ready()
        yield Figure(case=case, name="RSS MB", value=_settled_bytes(broker) / 1e6)


def _first_acknowledgement_s(launcher: Launcher) -> float:
    with launcher.launch() as broker:
        if broker.server is None:
            raise ValueError(f"{launcher.name} was not started by the benchmark")
        broker.wait_until_listening()
        # Made only now, so that what is measured is not the client's back-off between attempts to connect; a plain
        # one, because librdkafka's idempotent producer asks for its id by a timer of half a second on any broker.
        producer = clients.plain_producer(broker.bootstrap)
        errors: list[object] = []
        producer.produce("start", b"first", on_delivery=lambda error, _: errors.append(error))
        producer.flush(DELIVERY_TIMEOUT_S)
        ended_s = time.monotonic()
        if errors != [None]:
            reason = errors[0] if errors else f"no answer within {DELIVERY_TIMEOUT_S:.0f} s"
            raise clients.DeliveryFailedError(f"the first message was not acknowledged: {reason}")
        return ended_s - broker.server.started_s


def _settled_bytes(broker: Broker) -> int:
    """Read resident memory step by step until a step changes it by less than one percent."""
    sizes: list[int] = []
    for _ in range(SETTLE_STEPS):
        if (usage := broker.usage()) is None:
            raise ValueError("the broker's process cannot be looked at")
        sizes.append(usage.resident_bytes)
        if any(abs(b - a) <= SETTLED_CHANGE * a for a, b in itertools.pairwise(sizes[-2:])):
            break
        time.sleep(SETTLE_STEP_S)
    return sizes[-1]
