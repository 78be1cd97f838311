"""A process with embedded brokers, one after another: `python -m benchmarks.cases.embedded N`.

Prints for each but the first how many seconds it took from its making to the first acknowledged message.
"""

import sys
import time

import exacta
from benchmarks.clients import TRANSACTION_TIMEOUT_S, DeliveryFailedError, plain_producer


def first_acknowledgement_s() -> float:
    """Start a broker, send it a message, and stop it; raises DeliveryFailedError."""
    begun_s = time.perf_counter()
    with exacta.Broker() as broker:
        producer = plain_producer(broker.bootstrap_servers, linger_ms=0)
        producer.produce("start", b"first")
        if producer.flush(TRANSACTION_TIMEOUT_S):
            raise DeliveryFailedError("the first message was not acknowledged")
        ended_s = time.perf_counter()
        del producer  # before its broker
    return ended_s - begun_s


if __name__ == "__main__":
    first_acknowledgement_s()
    for _ in range(int(sys.argv[1])):
        print(first_acknowledgement_s())
