"""Write down what a real Apache Pulsar makes of programs, so that Exacta can be held to it without one.

    export EXACTA_TEST_PULSAR=pulsar://host:port EXACTA_TEST_PULSAR_WEB=http://host:port
    python -m tests.pulsar.differential.record

Each program is run until it comes out the same twice, with growing patience. One that does not is left out, and named.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.pulsar.differential.agree import Observed, real
from tests.pulsar.differential.found import FOUND
from tests.pulsar.differential.programs import Program, program
from tests.pulsar.differential.side import Told
from tests.pulsar.differential.steps import as_data, from_data

RECORDED = Path(__file__).with_name("recorded.json")
RANDOM = 60
"""So many random programs are written down beside those of `found.py`."""
AT_ONCE = 8
PATIENCE_S = (0.3, 0.5, 1.0)
"""The seconds without a byte after which nothing more is awaited, one run after the other."""


def read() -> dict[str, tuple[Program, Observed]]:
    """Return the programs that are written down, with what Pulsar made of them."""
    data = json.loads(RECORDED.read_text())
    return {
        name: (
            tuple(from_data(step) for step, *_ in steps),
            tuple(Told(answer, tuple(came)) for _, answer, *came in steps),
        )
        for name, steps in data.items()
    }


def settled(steps: Program) -> Observed | None:
    """Return what comes of a program, as soon as two runs of it have come out the same; None if none do."""
    before: Observed = ()
    for quiet_s in PATIENCE_S:
        found = real(steps, quiet_s)
        if found == before:
            return found
        before = found
    return None


def main() -> None:
    """Record, and write the file."""
    programs = {**FOUND, **{f"random {seed}": program(seed) for seed in range(RANDOM)}}
    lines: list[str] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for (name, steps), came in zip(programs.items(), pool.map(settled, programs.values()), strict=True):
            if came is None:
                print(f"{name} does not come out the same")
                continue
            rows = [[as_data(step), told.answer, *told.came] for step, told in zip(steps, came, strict=False)]
            lines.append(f"{json.dumps(name)}: {json.dumps(rows)}")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
