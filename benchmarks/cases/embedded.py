"""A process with embedded brokers, one after another: `python -m benchmarks.cases.embedded N`.

Prints for each but the first how many seconds it took from its making to the first acknowledged message.
"""

import sys
import time

import exacta
from benchmarks.clients import send_first


def embedded_start_s() -> float:
    """Start a broker, send it a message, and stop it; raises DeliveryFailedError."""
    begun_s = time.perf_counter()
    with exacta.Broker() as broker:
        send_first(broker.bootstrap_servers)
        ended_s = time.perf_counter()
    return ended_s - begun_s


if __name__ == "__main__":
    embedded_start_s()
    for _ in range(int(sys.argv[1])):
        print(embedded_start_s())
