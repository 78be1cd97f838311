"""Programs that consume, transform and produce, as processes that can be killed; `Transform.java` is one of them."""

import contextlib
import queue
import subprocess
import threading
from pathlib import Path

from tests.pulsar_clients.java import both_clients

START_TIMEOUT_S = 90.0
_JAVA = ("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def compiled(classes: Path, *sources: Path) -> list[str]:
    """Compile a program in Java, whose own file comes last; return how it is started, up to its arguments."""
    class_path = ":".join(map(str, [classes, *both_clients()]))
    command = ["javac", "--release", "17", "-d", str(classes), "-cp", class_path, *map(str, sources)]
    subprocess.run(command, check=True, timeout=120)
    return [*_JAVA, "-cp", class_path, sources[-1].stem]


class Transformer:
    """One process of it."""

    def __init__(self, command: list[str], log: Path) -> None:
        """Start it; `command` lacks the last argument, the seed."""
        self._log = log
        self._command = command
        self.lines: list[str] = []
        """The lines that it has printed: about its transactions, and about failures."""
        self._starts = 0
        self.start()

    def __enter__(self) -> "Transformer":
        """Go on."""
        return self

    def __exit__(self, *failure: object) -> None:
        """End it."""
        self.kill()

    def start(self) -> None:
        """Start it; another seed draws other transactions."""
        self._starts += 1
        seed = str(1000 * self._starts + len(self.lines))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*self._command, seed], stdout=subprocess.PIPE, stderr=log, text=True)
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()

    def wait_for(self, word: str, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until it says something, from the last such wait on."""
        with contextlib.suppress(queue.Empty):
            while (line := self._said.get(timeout=timeout_s)) != "":
                if line.startswith(word):
                    return
        raise AssertionError(f"it did not say {word}; see {self._log}; at last {self.lines[-5:]}")

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()
        self._process.wait()
        self._listener.join()

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.lines.append(line.strip())
                self._said.put(line.strip())
        self._said.put("")
