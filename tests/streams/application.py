"""The Kafka Streams application `Totals.java`: compiled once, and run as a process that can be killed."""

import queue
import subprocess
import threading
from pathlib import Path

from benchmarks.kafka.distribution import CACHE, KAFKA_VERSION, java_banner
from benchmarks.maven import fetch_jars

HERE = Path(__file__).parent
STATE_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
_JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def compiled(classes: Path) -> str:
    """Compile the application; return the class path that it runs with."""
    java_banner()
    properties = {"kafka.version": KAFKA_VERSION}
    what, folder = f"Kafka Streams {KAFKA_VERSION}", CACHE / f"kafka-streams-{KAFKA_VERSION}"
    jars = fetch_jars(what, HERE / "pom.xml", folder, properties)
    command = ["javac", "--release", "17", "-d", str(classes), "-cp", f"{jars}/*", str(HERE / "Totals.java")]
    subprocess.run(command, check=True, timeout=120)
    return f"{classes}:{jars}/*"


class Application:
    """One instance, with a folder of its own for its state; `folder` keeps the log too."""

    def __init__(self, class_path: str, bootstrap: str, name: str, folder: Path) -> None:
        """Remember how to start it."""
        self.name = name
        self.log = folder / "log"
        self._command = [*_JAVA, "-cp", class_path, "Totals", bootstrap, name, str(folder / "state")]
        self._process: subprocess.Popen[str] | None = None
        self._states: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.failures: list[str] = []

    def start(self) -> None:
        """Start it, and wait until it runs: it has joined its group, and its state is restored."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        self._states = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, args=(self._process, self._states), daemon=True)
        self._listener.start()
        self.wait_for("RUNNING")

    def wait_for(self, state: str) -> None:
        """Wait until it is in a state of KafkaStreams."""
        while (found := self._states.get(timeout=STATE_TIMEOUT_S)) != state:
            assert found is not None, f"it has ended, see {self.log}"

    def kill(self) -> None:
        """End it by SIGKILL; harmless where it does not run."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def stop(self) -> None:
        """Let it end in order."""
        assert self._process is not None
        self._process.terminate()
        self._end()

    def _end(self) -> None:
        assert self._process is not None
        self._process.wait(STOP_TIMEOUT_S)
        self._listener.join()
        self._process = None

    def _listen(self, process: "subprocess.Popen[str]", states: "queue.SimpleQueue[str | None]") -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                if line.startswith("FAILED"):
                    self.failures.append(line.strip())
                states.put(line.strip())
        states.put(None)
