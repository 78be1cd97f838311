"""The bound on what one request may ask for: this many elements, and nothing twice where an answer is long.

A request is served in one turn of the event loop, in which everybody else waits, and its answer lies in memory whole.
Both grow with the elements of its arrays, which cost a sender a few bytes each. Hence two rules for all APIs:

- The arrays of one request have at most `most_elements` elements in all. The codec stops at the first one too many, so
  that it costs no more than the request that would be served.
- Where what is described may be much longer than its name, it is described once (`first_time`), however often it is
  named. Clients keep such answers by name, so that a repeat tells them nothing.
"""

from collections.abc import Callable, Hashable

from exacta.core.values.limits import Limits

FEWEST_ELEMENTS = 300_000


def most_elements(limits: Limits) -> int:
    """Return the bound for one request: all partitions that may be, each in a topic of its own, with one more word."""
    return max(FEWEST_ELEMENTS, 3 * limits.max_partitions)


def first_time() -> Callable[[Hashable], bool]:
    """Return a function that says of each thing whether it is asked about it for the first time."""
    seen: set[Hashable] = set()

    def is_first(thing: Hashable) -> bool:
        before = len(seen)
        seen.add(thing)
        return len(seen) > before

    return is_first
