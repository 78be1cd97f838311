"""Lives of a query: Spark drivers in processes of their own, of which the next stands by while one lasts.

Owns starting, ordering and ending them; what a life does is `pipelines.py`. Half of a life's time is Spark's start, so
a driver that is about to be killed has a successor that is warm already and begins when told.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from exacta.demo.processes import DriverProcess
from tests.spark.pipelines import Job
from tests.spark.quick_java import quick_spark_environment

ROOT = Path(__file__).parents[2]
READY_WITHIN_S = 180.0
LOOK_EVERY_S = 0.002
MASTER = "local[2,20]"
"""A task may fail again and again, for as long as somebody kills workers."""


def wait_until(happened: Callable[[], object], what: str, within_s: float = READY_WITHIN_S) -> None:
    """Wait for an event that only polling shows; raises TimeoutError."""
    deadline = time.monotonic() + within_s
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within_s:.0f} s: {what}")
        time.sleep(LOOK_EVERY_S)


class Life(DriverProcess):
    """One life: it boots at once, and begins when told."""

    def __init__(self, directory: Path, *, master: str = MASTER, settings: dict[str, str] | None = None) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        scratch = directory / "scratch"
        scratch.mkdir()
        given = [f"{name}={value}" for name, value in (settings or {}).items()]
        super().__init__(
            [sys.executable, "-m", "tests.spark.pipelines", str(directory), master, *given],
            directory / "log",
            quick_spark_environment(scratch),
            ROOT,
        )
        self.start()

    def begin(self, job: Job) -> None:
        """Wait until it stands by, and let it do the job."""
        wait_until(lambda: self._is_ready(), f"Spark stands by, see {self.log}")
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(job.line())
        stdin.flush()

    def failures(self) -> list[str]:
        """Return what queries of this life failed with."""
        noted = self.directory / "failures"
        return [json.loads(line) for line in noted.read_text().splitlines()] if noted.exists() else []

    def check_alive(self) -> None:
        """Raise AssertionError, with the end of its log, where it has ended by itself."""
        if (code := self.exit_code()) is not None:
            raise AssertionError(f"a life ended by itself with {code}:\n{self.log.read_text()[-6_000:]}")

    def _is_ready(self) -> bool:
        self.check_alive()
        return (self.directory / "ready").exists()


class Lives:
    """The life that is, and the one that stands by for when it is killed."""

    def __init__(self, directory: Path, *, deaths: int, master: str = MASTER, settings: dict[str, str] | None = None):
        """Begin nothing yet; `deaths`: how many lives will need a successor."""
        self._directory, self._master, self._settings = directory, master, settings
        self._to_come = deaths + 1
        self.all: list[Life] = []
        self._standby = self._next()

    def begin(self, job: Job) -> Life:
        """Let the next life begin."""
        life = self._standby
        assert life is not None, "more deaths than were announced"
        life.begin(job)
        self._standby = self._next()
        return life

    def failures(self) -> list[str]:
        """Return what queries of all lives failed with."""
        return [failure for life in self.all for failure in life.failures()]

    def end(self) -> None:
        """End whatever lives."""
        for life in self.all:
            life.stop(0)

    def _next(self) -> Life | None:
        if self._to_come == 0:
            return None
        self._to_come -= 1
        life = Life(self._directory / f"life-{len(self.all) + 1}", master=self._master, settings=self._settings)
        self.all.append(life)
        return life
