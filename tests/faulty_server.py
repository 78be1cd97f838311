"""`exacta serve` on a disk that refuses some calls, for as long as a file is there: run as a process by the tests.

    python -m tests.faulty_server SWITCH CALL NAME ERRNO serve-arguments...

`Files` is the seam through which every call of the journal goes, so a refusal here is what a disk that went read-only,
a permission that was taken away, or a full quota looks like, whatever user runs the tests (root may write anywhere).
"""

import errno
import fnmatch
import os
import sys
from pathlib import Path

from exacta.adapters.local import journal
from exacta.adapters.local.files import PosixFiles
from exacta.cli.serve import run
from simulation.disk.in_place import InPlace


def refusing(switch: Path, call: str, pattern: str, number: int) -> type[PosixFiles]:
    """Return files of which this call fails on names like this."""

    class Refusing(PosixFiles):
        def __init__(self, directory: Path) -> None:
            super().__init__(directory)
            self._names: dict[int, str] = {}

        def _try(self, name_or_handle: "str | int") -> None:
            name = self._names.get(name_or_handle, "") if isinstance(name_or_handle, int) else name_or_handle
            if fnmatch.fnmatch(name, pattern) and switch.exists():
                raise OSError(number, os.strerror(number), str(self.directory / name))

    def wrapped(name: str) -> None:
        original = getattr(PosixFiles, name)

        def method(self: Refusing, *arguments: object, **named: object) -> object:
            if name == call or (call == "read" and name == "read_nowait"):
                self._try(arguments[0] if arguments else "")  # type: ignore[arg-type]
            result = original(self, *arguments, **named)
            if name in ("create", "open"):
                self._names[result] = str(arguments[0])
            return result

        setattr(Refusing, name, method)

    for name in ("lock", "names", "create", "open", "write", "truncate", "sync_data", "sync", "sync_directory"):
        wrapped(name)
    for name in ("read", "read_nowait", "rename", "remove"):
        wrapped(name)
    return Refusing


if __name__ == "__main__":
    switch_, call_, pattern_, errno_, *arguments_ = sys.argv[1:]
    files = refusing(Path(switch_), call_, pattern_, getattr(errno, errno_))
    journal.PosixFiles = files  # type: ignore[attr-defined]
    # A child process would know nothing of the refusals, so its jobs run in this one.
    journal.ChildProcess = lambda directory: InPlace(files(directory))  # type: ignore[assignment,attr-defined,return-value]
    sys.exit(run(arguments_))
