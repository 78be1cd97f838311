"""The order in which several processes run the tests: the longest first, dealt out to all of them.

`--dist worksteal` gives each process a block of neighbours, and lets one that has finished take half of what another
one has left. So each block begins with its part of the long tests, and ends with short ones, which are worth stealing.
`durations.json` holds the seconds of the tests that take longer than one; `python -m tests.order REPORT.xml` notes
them again from what `make test ARGS="--junit-xml=REPORT.xml"` wrote.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from xml.etree import ElementTree

NOTED = Path(__file__).with_name("durations.json")
LONG_S = 1.0
Test = TypeVar("Test")


def noted() -> dict[str, float]:
    """Return the seconds that each long test took, by its name without parameters: the longest of its cases counts."""
    durations: dict[str, float] = json.loads(NOTED.read_text())
    return durations


def dealt(tests: Sequence[Test], workers: int, *, name: Callable[[Test], str]) -> list[Test]:
    """Return the tests in blocks of one size, one for each process; a test in two runs has the same place in both."""
    durations = noted()
    seconds = [durations.get(name(test).partition("[")[0], 0.0) for test in tests]
    by_length = sorted((at for at, each in enumerate(seconds) if each), key=lambda at: -seconds[at])
    blocks: list[list[int]] = [[] for _ in range(workers)]
    for at in by_length:
        min(blocks, key=lambda block: sum(seconds[each] for each in block)).append(at)
    is_long = set(by_length)
    rest = [at for at in range(len(tests)) if at not in is_long]
    left = len(tests)
    for number, block in enumerate(blocks):
        size = left // (workers - number)  # as worksteal divides them
        missing = max(0, size - len(block))
        block += rest[:missing]
        del rest[:missing]
        left -= size
    return [tests[at] for block in blocks for at in block]


def node_id(class_name: str, name: str) -> str:
    """Return how pytest names a test that a report names by its module, and by its class if it has one."""
    *path, last = class_name.split(".")
    classes = [last] if last[:1].isupper() else []
    module = path if classes else [*path, last]
    return "::".join([f"{'/'.join(module)}.py", *classes, name])


def main(report: str) -> None:
    """Note the durations that a report has."""
    found: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        seconds = float(case.get("time", "0"))
        test = node_id(case.get("classname", ""), case.get("name", "").partition("[")[0])
        if seconds >= LONG_S:
            found[test] = max(found.get(test, 0.0), round(seconds, 1))
    NOTED.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
