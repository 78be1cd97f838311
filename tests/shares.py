"""Sweeps run one tenth a commit: which tenth this is, and what belongs to it.

A sweep tries one rule at each of many places: each flipped bit, each crash point, each planted bug, each kill. The number
of the commit modulo ten chooses the share, so that ten commits in a row run the whole. `SHARE=3` before the same words
repeats the share of a failure, and `SHARE=all` runs the whole, as `make soak` does. Where there is no git, the share is 0.

The table in docs/explanation/tests.md says of each sweep what it proves, how large it is and where the whole runs.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

SHARES = 10
VARIABLE = "SHARE"
WHOLE = "all"
ROOT = Path(__file__).parents[1]

Place = TypeVar("Place")


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


def share_of(whole: Sequence[Place]) -> list[Place]:
    """Return the places of this share; a sweep of fewer than ten places runs one of them each time."""
    share = chosen()
    if share is None:
        return list(whole)
    return list(whole[share::SHARES]) or [whole[share % len(whole)]]


def shared(number: int) -> int:
    """Return how many of so many drawn examples, kills or worlds a share has."""
    return number if chosen() is None else max(1, number // SHARES)


def first_of(number: int) -> int:
    """Return the first of a share's block, where the whole numbers its places from 0 to `number` - 1."""
    return (chosen() or 0) * shared(number)


def closing_line() -> str:
    """Say which share ran, and how to repeat it."""
    share = chosen()
    if share is None:
        return "the whole of each sweep ran"
    return (
        f"share {share} of {SHARES} of each sweep ran: {VARIABLE}={share} repeats it, {VARIABLE}={WHOLE} runs the whole"
    )


def _commits() -> int:
    command = ["git", "rev-list", "--count", "HEAD"]
    try:
        return int(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=30).stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0
