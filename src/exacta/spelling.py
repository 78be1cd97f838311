"""Guess the known name that somebody meant by a name which is not known."""

from collections.abc import Callable, Iterable
from difflib import SequenceMatcher, get_close_matches

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


def is_misspelt(name: str, known: str) -> bool:
    """Return whether a name is another one with a letter that is wrong, missing, too many or misplaced."""
    in_common = sum(each.size for each in SequenceMatcher(None, name, known).get_matching_blocks())
    return abs(len(name) - len(known)) <= 1 and len(name) + len(known) - 2 * in_common <= 2
