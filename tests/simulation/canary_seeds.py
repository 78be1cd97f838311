"""The world in which each canary is looked for first, and what notes it: `python -m tests.simulation.canary_seeds`.

A change of what a world draws moves the worlds in which a canary shows. A seed that is out of date costs the tests time
and no more, as they go on from it. What is noted is the first world that shows the canary in an order of their lengths:
the shortest one, so that all canaries are found in a minute, and not in ten.
"""

import json
import logging
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from simulation.canaries import canaries
from simulation.runner import run_world

FILE = Path(__file__).with_name("canary_seeds.json")
WORLDS = 60
"""This many are put in an order of their lengths. If none of them shows a canary, the next ones are tried in turn."""
MOST = 400


def noted() -> dict[str, int]:
    """Return the seed for each canary that has one."""
    seeds: dict[str, int] = json.loads(FILE.read_text())
    return seeds


def _length(seed: int) -> int:
    """Return how many things happen in a world, which does not depend on the machine."""
    lines: list[str] = []
    run_world(seed, write=lines.append)
    return len(lines)


def _shows(name: str, seed: int) -> bool:
    return canaries()[name].is_seen_in(run_world(seed, name).violations)


def _look(name: str, seeds: list[int]) -> int | None:
    """Return the first of these that shows the canary."""
    logging.disable(logging.CRITICAL)
    return next((seed for seed in seeds if _shows(name, seed)), None)


def main() -> None:
    """Look for all canaries that do not show where they are noted, or for all of them with `--all`."""
    before = {} if "--all" in sys.argv[1:] else noted()
    logging.disable(logging.CRITICAL)
    names = sorted(canaries())
    after: dict[str, int] = {}
    with ProcessPoolExecutor(2) as pool:
        by_length = sorted(zip(pool.map(_length, range(WORLDS)), range(WORLDS), strict=True))
        order = [*(seed for _, seed in by_length), *range(WORLDS, MOST)]
        found = pool.map(_look, names, [[before[name]] if name in before else order for name in names])
        for name, seed in zip(names, found, strict=True):
            again = seed if seed is not None or name not in before else _look(name, order)
            if again is not None:
                after[name] = again
            print(name, before.get(name), "->", again, flush=True)
            known = {**before, **after}
            FILE.write_text(json.dumps({each: known[each] for each in names if each in known}, indent=2) + "\n")


if __name__ == "__main__":
    main()
