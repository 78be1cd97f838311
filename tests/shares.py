"""Sweeps run one tenth a commit: which tenth this is, and what belongs to it.

A sweep tries one rule at each of many places: each flipped bit, each crash point, each planted bug, each kill. The
number of the commit modulo ten chooses the share, so that ten commits in a row run the whole. `SHARE=3` before the same
words repeats the share in which something failed, and `SHARE=all` runs the whole, as `make soak` does. Where there is
no git, the share is 0.

The table in docs/explanation/tests.md says of each sweep what it proves, how large it is and where the whole runs.
"""

import os
import subprocess
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

SHARES = 10
VARIABLE = "SHARE"
WHOLE = "all"
LEAST_EXAMPLES = 5
"""Hypothesis begins with the smallest example, which says little. A share draws some others, too."""

ROOT = Path(__file__).parents[1]
Place = TypeVar("Place")
Case = TypeVar("Case", bound=Hashable)

handed_on: frozenset[Path] | None = None
"""The files that the process which has begun the run has found to be changed."""


def chosen() -> int | None:
    """Return the number of the share, from 0 to 9, or None for the whole; raises ValueError for another word.

    The processes of one run inherit the choice, so that a commit in the middle of the run changes nothing.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        given = os.environ[VARIABLE] = str(_commits() % SHARES)
    if given == WHOLE:
        return None
    if given not in map(str, range(SHARES)):
        raise ValueError(f"{VARIABLE}={given}: give a number from 0 to {SHARES - 1}, or {WHOLE}")
    return int(given)


def is_whole() -> bool:
    """Return whether each sweep runs whole. Only then must it have met everything that it is meant to meet."""
    return chosen() is None


def share_of(whole: Sequence[Place]) -> list[Place]:
    """Return the places of this share; a sweep of fewer than ten places runs one of them each time."""
    share = chosen()
    if share is None or not whole:
        return list(whole)
    return list(whole[share::SHARES]) or [whole[share % len(whole)]]


def share_of_cases(cases: Iterable[Case], *, name: Callable[[Case], str]) -> set[Case]:
    """Return the share of the cases of each test; its name ends where its parameters begin."""
    sweeps: dict[str, list[Case]] = {}
    for case in cases:
        sweeps.setdefault(name(case).partition("[")[0], []).append(case)
    return {case for whole in sweeps.values() for case in share_of(whole)}


def block_of(whole: Sequence[Place]) -> list[Place]:
    """Return this share as neighbours: the third tenth of the whole, say."""
    share = chosen()
    if share is None:
        return list(whole)
    return list(whole[len(whole) * share // SHARES : len(whole) * (share + 1) // SHARES])


def shared(number: int) -> int:
    """Return the size of a share of this number of places."""
    return number if is_whole() else max(1, number // SHARES)


def examples(number: int) -> int:
    """Return the number of examples that Hypothesis draws. tests/conftest.py sets the seed."""
    return max(shared(number), min(LEAST_EXAMPLES, number))


@cache
def changed() -> frozenset[Path]:
    """Return the files that the last ten commits or the working tree have changed; without git there are none.

    The process that begins a run asks git, and hands the answer on: a file that is saved meanwhile changes nothing.
    """
    if handed_on is not None:
        return handed_on
    since = ["git", "log", "--first-parent", "-m", f"-{SHARES}", "--name-only", "--format="]
    names = _git(*since) + _git("git", "diff", "--name-only", "HEAD")
    return frozenset(ROOT / name for name in names.splitlines() if name)


def closing_line() -> str:
    """Say which share ran, and how to repeat it."""
    share = chosen()
    if share is None:
        return "each sweep ran whole"
    return f"share {share} of {SHARES} of each sweep: {VARIABLE}={share} repeats it, {VARIABLE}={WHOLE} runs the whole"


def _commits() -> int:
    return int(_git("git", "rev-list", "--count", "--first-parent", "HEAD") or 0)


def _git(*command: str) -> str:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=30, text=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
