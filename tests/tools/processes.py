"""Tools that run for long, each in a process that can be killed: they tell what they do in lines of JSON."""

import json
import queue
import subprocess
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tests.tools.toolbox import command

EVENT_TIMEOUT_S = 90.0


class Running:
    """A tool that runs; a context that ends it by SIGKILL if it runs still."""

    def __init__(self, tool: str, *arguments: str) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            command(tool, *arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.events: list[dict[str, Any]] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the next event that is wanted; fails if none comes or the tool ends."""
        while (event := self._next()) is not None:
            if wanted(event):
                return event
        raise AssertionError(f"the tool has ended with {self._process.wait()}: {self.events[-3:]}")

    def rest(self, status: int = 0) -> list[dict[str, Any]]:
        """Wait until it ends by itself, with this status; return all its events."""
        while self._next() is not None:
            pass
        assert self._process.wait(EVENT_TIMEOUT_S) == status, self.events[-3:]
        return self.events

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()
        self._process.wait()
        self._listener.join()

    def __enter__(self) -> "Running":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _next(self) -> dict[str, Any] | None:
        line = self._lines.get(timeout=EVENT_TIMEOUT_S)
        if line is None:
            return None
        event: dict[str, Any] = json.loads(line)
        self.events.append(event)
        return event

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith("{"):
                    self._lines.put(line)
        self._lines.put(None)
