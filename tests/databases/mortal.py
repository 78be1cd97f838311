"""Lives of the program that end by SIGKILL at a point of their own choice: each is a process, forked from a warm one.

    python -m tests.databases.mortal

reads orders as lines of JSON, and answers each with a line: how the life has ended, and at which point.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Self

from tests.databases import shop
from tests.databases.points import hooked

ROOT = Path(__file__).parents[2]


class End(NamedTuple):
    """The end of a life: whether it was killed; and the names of the points that it has come to."""

    killed: bool
    points: list[str]


class Lives:
    """The warm process, seen from the test."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.databases.mortal"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def live(self, place: shop.Place, orders: int, kill_at: int = 0) -> End:
        """Let the program live until it has placed this many orders, or is killed at a point."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([*place, orders, kill_at]).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return End(**answer)


def _live(place: shop.Place, orders: int, kill_at: int, out: int) -> None:
    points: list[str] = []

    def hook(at: int, name: str) -> None:
        points.append(name)
        if at == kill_at:
            os.write(out, json.dumps({"killed": True, "points": points}).encode())
            os.kill(os.getpid(), signal.SIGKILL)

    with hooked(hook):
        shop.life(place, orders)
    os.write(out, json.dumps({"killed": False, "points": points}).encode())


def _fork(line: str) -> str:
    *fields, orders, kill_at = json.loads(line)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            _live(shop.Place(*fields), orders, kill_at, writing)
            code = 0
        except BaseException as error:  # noqa: BLE001 - it is told to the test
            os.write(writing, json.dumps({"error": repr(error)}).encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    ended = json.loads(answer)
    if "error" not in ended and killed != ended["killed"]:
        ended = {"error": f"{ended}, but status {status}"}
    return json.dumps(ended)


if __name__ == "__main__":
    for line in sys.stdin:
        print(_fork(line), flush=True)
