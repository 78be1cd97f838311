"""Guess the known name that somebody meant by a name which is not known."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches

_LEAST_RATIO = 0.6


def did_you_mean(
    name: str,
    known: Iterable[str],
    *,
    most: int = 1,
    least_ratio: float = _LEAST_RATIO,
    key: Callable[[str], str] = str,
    quote: str = "",
) -> str:
    """Return the question `did you mean NAME?` after the known names nearest to `name`, or "" if none is near.

    Names are compared by their `key`. `least_ratio` is how much alike two keys must be, as difflib's ratio. The
    question has `most` names at most, each within `quote`.
    """
    by_key = {key(each): each for each in known}
    near = get_close_matches(key(name), by_key, n=most, cutoff=least_ratio)
    return f"did you mean {' or '.join(f'{quote}{by_key[each]}{quote}' for each in near)}?" if near else ""
