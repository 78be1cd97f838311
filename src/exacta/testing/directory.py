"""The data directory of an embedded broker: one that the test names, which stays, or a temporary one.

Owns the temporary directory from the first start on until the broker is closed. At the latest it goes with this object,
or when the process ends. A process that was forked from this one has the object as well, and removes nothing.
"""

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from exacta.server.errors import ServerError


class DataDirectory:
    """The directory of one broker, over all its starts."""

    def __init__(self, given: str | Path | None) -> None:
        if given == "":
            raise ValueError("data must be a directory, not an empty name")
        self._given = None if given is None else Path(given).absolute()  # a test may change the working directory
        self._temporary: Path | None = None
        self._process_id = 0
        self._remove_later: weakref.finalize[Any, Any] | None = None

    @property
    def path(self) -> Path:
        """The directory. Raises ServerError where it is a temporary one that is not there yet, or not any more."""
        found = self._given or self._temporary
        if found is None:
            raise ServerError("the broker has not been started")
        return found

    def make(self) -> bool:
        """Make a temporary directory if one is needed; return whether one was made."""
        if self._given is not None or self._temporary is not None:
            return False
        self._temporary = Path(tempfile.mkdtemp(prefix="exacta-"))
        self._process_id = os.getpid()
        self._remove_later = weakref.finalize(self, _remove_in_process, self._process_id, self._temporary)
        return True

    def remove(self) -> None:
        """Remove a temporary directory."""
        if self._temporary is not None and self._remove_later is not None:
            _remove_in_process(self._process_id, self._temporary)  # a finalizer tries once, and may be interrupted
            self._remove_later.detach()
        self._temporary = self._remove_later = None


def _remove_in_process(process_id: int, directory: Path) -> None:
    if os.getpid() == process_id:
        shutil.rmtree(directory, ignore_errors=True)
