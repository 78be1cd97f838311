"""The program of a client process, `python -m exacta.verify.workload.process`. Its orders come on standard input.

It ends when its standard input does. That is so when it is told to end, and when the process that started it is gone.
"""

import os
import threading

import msgspec

from exacta.verify.workload.notes import Notes
from exacta.verify.workload.producing import produce
from exacta.verify.workload.reading import read_to_the_end, watch
from exacta.verify.workload.spec import Role, Spec
from exacta.verify.workload.transforming import transform

_STANDARD_INPUT = 0


def main() -> None:
    """Run one client."""
    spec = msgspec.json.decode(_first_line(), type=Spec)
    notes = Notes(spec.epoch_ns)
    stop = threading.Event()
    threading.Thread(target=_listen, args=(stop,), daemon=True).start()
    match spec.role:
        case Role.READER:
            watch(spec, notes, stop)
        case Role.FINAL:
            read_to_the_end(spec, notes)
        case Role.ETL:
            transform(spec, notes, stop)
        case Role.APPEND | Role.TRANSFER | Role.LOAD:
            produce(spec, notes, stop)


def _first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(_STANDARD_INPUT, 1)):
        line += byte
    return line


def _listen(stop: threading.Event) -> None:
    # Not through `sys.stdin`, whose lock an interpreter that ends would wait for in vain.
    while os.read(_STANDARD_INPUT, 1):
        pass
    stop.set()


if __name__ == "__main__":
    main()
