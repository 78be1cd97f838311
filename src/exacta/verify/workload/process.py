"""The program of a client process, `python -m exacta.verify.workload.process`. Its orders come on standard input.

It ends when its standard input does. That is so when it is told to end, and when the process that started it is gone.
"""

import os
import threading

import msgspec

from exacta.verify.history import Isolation
from exacta.verify.workload.notes import Notes
from exacta.verify.workload.producing import produce
from exacta.verify.workload.reading import read_to_the_end, watch
from exacta.verify.workload.spec import Role, Spec
from exacta.verify.workload.transforming import transform

_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = 0, 1, 2


def main() -> None:
    """Run one client."""
    spec = msgspec.json.decode(_first_line(), type=Spec)
    # Pulsar's client logs to the standard output, which is for what is written down.
    notes = Notes(spec.epoch_ns, os.dup(_STANDARD_OUTPUT))
    os.dup2(_STANDARD_ERROR, _STANDARD_OUTPUT)
    stop = threading.Event()
    threading.Thread(target=_listen, args=(stop,), daemon=True).start()
    match spec.role:
        case Role.READER | Role.FINAL if spec.isolation is Isolation.PULSAR:
            _read_by_pulsar(spec, notes, stop)
        case Role.READER:
            watch(spec, notes, stop)
        case Role.FINAL:
            read_to_the_end(spec, notes)
        case Role.APPEND_PULSAR | Role.LOAD_PULSAR | Role.TRANSFER_PULSAR | Role.TRANSFER_JOINT:
            _write_by_pulsar(spec, notes, stop)
        case Role.ETL:
            transform(spec, notes, stop)
        case Role.APPEND | Role.TRANSFER | Role.LOAD:
            produce(spec, notes, stop)


def _read_by_pulsar(spec: Spec, notes: Notes, stop: threading.Event) -> None:
    from exacta.verify.workload.pulsar import watching  # the package is there only where it is asked for

    if spec.role is Role.READER:
        watching.watch(spec, notes, stop)
    else:
        watching.read_to_the_end(spec, notes)


def _write_by_pulsar(spec: Spec, notes: Notes, stop: threading.Event) -> None:
    if spec.role is Role.TRANSFER_PULSAR:
        from exacta.verify.workload.pulsar.transacting import transact

        transact(spec, notes, stop)
    elif spec.role is Role.TRANSFER_JOINT:
        from exacta.verify.workload.pulsar.joint import JointTransactor

        produce(spec, notes, stop, JointTransactor)
    else:
        from exacta.verify.workload.pulsar.sending import send

        send(spec, notes, stop)


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
