"""A client that sends heartbeats; called as a program of its own, so that the attacker's work does not hold it up.

Each line on its standard input asks for the longest time that an answer took since the last one, in milliseconds.
"""

import sys
import threading
import time

from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest
from tests.kafka.wire import Wire


def main(host: str, port: str) -> None:
    """Send heartbeats until the standard input ends."""
    waited: list[float] = []

    def answer() -> None:
        for _ in sys.stdin:
            told, waited[:] = waited[:], []
            print(f"{max(told, default=0.0) * 1000:.3f}", flush=True)

    asking = threading.Thread(target=answer)
    asking.start()
    wire = Wire((host, int(port)))
    wire.socket.settimeout(300)
    request = HeartbeatRequest(group_id="neighbour", generation_id=1, member_id="m")
    while asking.is_alive():
        began_s = time.monotonic()
        wire.ask(request, 4)
        waited.append(time.monotonic() - began_s)
        asking.join(0.005)


if __name__ == "__main__":
    main(*sys.argv[1:])
