"""`python -m simulation`: run worlds; exit 0 if all is well, or, with a canary, if it was found."""

import argparse
import logging
import sys
import time

from simulation import crash_points
from simulation.canaries import canaries
from simulation.runner import run_seeds, run_world
from simulation.world import Verdict

UNTIL_STOPPED = 1 << 40
SHOWN_VIOLATIONS = 5


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulation", description="Simulate brokers, clients and faults.")
    parser.add_argument("--seeds", type=int, help="how many worlds (100, or as many as there is time for)")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="stop after this many seconds")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--canary", choices=sorted(canaries()), metavar="NAME", help="plant a bug, and look for it")
    parser.add_argument("--canaries", action="store_true", help="list the bugs that can be planted")
    parser.add_argument("--trace", action="store_true", help="write what happens in the first world")
    parser.add_argument("--digests", action="store_true", help="write each world's trace hash")
    parser.add_argument("--crash-points", type=int, metavar="LENGTH", help="crash everywhere in all short histories")
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _tell(verdict: Verdict, canary: str | None) -> None:
    _say(f"seed {verdict.seed} fails:")
    for violation in verdict.violations[:SHOWN_VIOLATIONS]:
        _say(f"  {violation}")
    planted = f" --canary {canary}" if canary else ""
    _say(f"repeat it with: python -m simulation --first-seed {verdict.seed} --seeds 1{planted} --trace")


def _crash_points(length: int) -> int:
    begin, count = time.monotonic(), 0
    found = crash_points.sequences(length)
    for sequence in found:
        crashes, complaints = crash_points.crash_everywhere(sequence)
        count += crashes
        if complaints:
            for complaint in complaints[:SHOWN_VIOLATIONS]:
                _say(complaint)
            return 1
    _say(f"{count} crashes in {len(found)} histories of up to {length} commands, {time.monotonic() - begin:.0f} s")
    return 0


def main() -> int:
    """Do what is asked."""
    logging.getLogger("exacta").setLevel(logging.ERROR)
    asked = _arguments()
    if asked.canaries:
        for canary in canaries().values():
            _say(f"{canary.name}: {canary.stands_for}")
        return 0
    if asked.crash_points is not None:
        return _crash_points(asked.crash_points)
    if asked.trace:
        verdict = run_world(asked.first_seed, asked.canary, _say)
        if verdict.violations:
            _tell(verdict, asked.canary)
        return int(bool(verdict.violations))
    seeds = asked.seeds if asked.seeds is not None else 100 if asked.seconds is None else UNTIL_STOPPED
    digests = (lambda verdict: _say(f"{verdict.seed} {verdict.digest}")) if asked.digests else (lambda verdict: None)
    totals = run_seeds(
        asked.first_seed, seeds, seconds=asked.seconds, canary=asked.canary, jobs=asked.jobs, told=digests
    )
    if not asked.digests:
        for line in totals.lines():
            _say(line)
    for verdict in totals.failures:
        _tell(verdict, asked.canary)
    found = bool(totals.failures)
    if asked.canary:
        _say(f"the canary {asked.canary} was {'found' if found else 'NOT found'} in {totals.seeds} worlds")
        for verdict in totals.others[:SHOWN_VIOLATIONS]:
            _say(f"seed {verdict.seed} fails, and does not show it: {verdict.violations[0]}")
    return int(found is (asked.canary is None))


if __name__ == "__main__":
    sys.exit(main())
