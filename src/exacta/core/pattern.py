"""Patterns of names that clients send, in RE2's syntax: of topics (KIP-848) and of transactional ids (KIP-1152).

They are matched on the event loop, and are any client's: so by RE2, as Apache Kafka does, whose time is linear in the
name whatever the pattern. Python's own `re` can be made to take hours.
"""

from collections.abc import Callable
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
