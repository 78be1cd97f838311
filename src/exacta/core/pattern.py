"""Patterns of names that clients send, in RE2's syntax: of topics (KIP-848) and of transactional ids (KIP-1152).

They are any client's, and are matched on the event loop or on a thread: so by RE2, as Apache Kafka does, whose time is
linear in the name whatever the pattern. Python's own `re` can be made to take hours.
"""

from collections.abc import Callable, Set
from functools import lru_cache
from typing import Any

MAX_PATTERN_MEMORY_BYTES = 1 << 18
"""RE2 may use so much for one pattern, and keeps some of it for the next time: one that expands to more is refused."""


@lru_cache(maxsize=64)
def matcher(pattern: str) -> Callable[[str], Any]:
    """Return what tells whether the pattern matches a whole name; raises ValueError for what RE2 does not take."""
    import re2  # here: few use patterns, and every start would pay for it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_MEMORY_BYTES
    try:
        match: Callable[[str], Any] = re2.compile(pattern, options).fullmatch
    except re2.error as error:
        raise ValueError(str(error)) from error
    return match


def matching(pattern: str, names: Set[str]) -> frozenset[str]:
    """Return the names that a pattern matches as a whole; raises ValueError for what RE2 does not take.

    What was matched before is remembered. So a thread can match many names first, and the step after it is short.
    """
    if not pattern:
        return frozenset()
    match, verdicts = matcher(pattern), _verdicts(pattern)
    if len(verdicts) > 2 * len(names) + _FEW_NAMES:  # most of them are gone
        verdicts.clear()
    found = []
    for name in names:  # one look at a time: another thread may do the same
        verdict = verdicts.get(name)
        if verdict is None:
            verdict = verdicts[name] = match(name) is not None
        if verdict:
            found.append(name)
    return frozenset(found)


_FEW_NAMES = 1_000


@lru_cache(maxsize=64)
def _verdicts(pattern: str) -> dict[str, bool]:
    return {}
