"""Parse where reading begins and ends: options name it, or give offsets or times.

This module owns the values and their parsers. `exacta.spark.source.bounds` finds the offsets behind them.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from exacta.spark.options.parsing import MOST_LONG, OptionError, at_most, check_partitions_named, json_object

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

Offsets = Mapping[str, Mapping[int, int]]
"""An offset for each topic and partition; -2 is the earliest, -1 the latest."""


class AtTime(Struct, frozen=True):
    """The first offset whose record is not older than a time, in ms since 1970: one time for all, or one for each."""

    name: str  # of the option that says so
    times_ms: int | Mapping[str, Mapping[int, int]]


Bound = str | Offsets | AtTime
"""The place where a range begins or ends."""


def by_name_or_offset(name: str, value: str) -> str | Offsets:
    """Parse earliest, latest or `{"topic": {"0": 42}}`; raises `OptionError`."""
    if value.strip().lower() in (EARLIEST, LATEST):
        return value.strip().lower()
    found = _numbers(
        name,
        value,
        f"option '{name}' must be earliest, latest or JSON like {{\"topic\": {{\"0\": 42}}}}, not '{value}'",
    )
    if any(offset < -2 for offsets in found.values() for offset in offsets.values()):
        raise OptionError(f"option '{name}' holds an offset below -2 (-2 is the earliest, -1 the latest)")
    return found


def by_time(name: str, value: str) -> AtTime:
    """Parse a time in ms for every partition; raises `OptionError`."""
    if not value.strip().isdecimal():
        raise OptionError(f"option '{name}' must be a time in ms since 1970, not '{value}'")
    return AtTime(name, at_most(name, value.strip(), MOST_LONG))


def by_times(name: str, value: str) -> AtTime:
    """Parse `{"topic": {"0": 1700000000000}}`; raises `OptionError`."""
    sentence = f"option '{name}' must be JSON like {{\"topic\": {{\"0\": 1700000000000}}}}, not '{value}'"
    found = _numbers(name, value, sentence)
    if any(time_ms < 0 for times in found.values() for time_ms in times.values()):
        raise OptionError(f"option '{name}' holds a time before 1970")
    if any(time_ms > MOST_LONG for times in found.values() for time_ms in times.values()):
        raise OptionError(f"option '{name}' holds a time above {MOST_LONG} ms")
    return AtTime(name, found)


def _numbers(name: str, value: str, sentence: str) -> dict[str, dict[int, int]]:
    try:
        found = {
            topic: {int(partition): _whole(number) for partition, number in numbers.items()}
            for topic, numbers in json_object(name, value).items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise OptionError(sentence) from error
    check_partitions_named(name, found)
    return found


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise TypeError(f"{number!r} is not a whole number")
    return number


def pattern(name: str, value: str) -> re.Pattern[str]:
    """Parse a regular expression; raises `OptionError`."""
    if not value.strip():
        raise OptionError(f"option '{name}' is empty")
    try:
        return re.compile(value.strip())
    except re.error as error:
        raise OptionError(f"option '{name}' is not a regular expression of Python's `re`: {error}") from error


# As Spark reads them; a number alone is in ms.
_UNITS_MS: Final = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(name: str, value: str) -> int:
    """Parse a time such as `15m`; raises `OptionError`."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", value.strip().lower())
    if found is None or found[2] not in _UNITS_MS:
        raise OptionError(f"option '{name}' must be a time such as 500ms, 30s, 15m, 2h or 1d, not '{value}'")
    unit_ms = _UNITS_MS[found[2]]
    return at_most(name, found[1], MOST_LONG // unit_ms) * unit_ms
