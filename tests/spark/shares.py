"""The share of a sweep that is run: a tenth, where `EXACTA_TEST_SHARE` names one of the tenths 0 to 9, else all of it.

The items are dealt out in turn, so ten shares that follow each other make the whole, and neighbours come into
different ones.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

SHARES = 10

Item = TypeVar("Item")


def share_of(items: Sequence[Item]) -> list[Item]:
    """Return the items that this run takes."""
    share = os.environ.get("EXACTA_TEST_SHARE", "")
    if not share:
        return list(items)
    assert share in map(str, range(SHARES)), f"EXACTA_TEST_SHARE is a number from 0 to {SHARES - 1}, not {share!r}"
    return list(items[int(share) :: SHARES])
