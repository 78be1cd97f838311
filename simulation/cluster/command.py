"""The command line of worlds of several brokers: `[FIRST_SEED] [SEEDS]`; a world that runs alone prints its trace."""

import logging
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

Write: TypeAlias = Callable[[str], None]
Outcome: TypeAlias = tuple[Sequence[str], Counter[str], Counter[str]]
"""The violations in a world, what was counted in it, and its faults."""


def main(run: Callable[[int, Write | None], Outcome]) -> None:
    """Run worlds one after another, each by its seed, and say what they came to."""
    logging.disable()
    numbers = [int(each) for each in sys.argv[1:]]
    first_seed, seeds = numbers + [0, 10][len(numbers) :]
    counts: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    lines: list[str] = []
    for seed in range(first_seed, first_seed + seeds):
        violations, counted, met = run(seed, _write if seeds == 1 else None)
        counts += counted
        faults += met
        if violations:
            lines += [f"world {seed}:", *(f"  {violation}" for violation in violations)]
    _write("\n".join([*lines, f"{seeds} worlds; {dict(counts)}; faults: {dict(faults)}"]))


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
