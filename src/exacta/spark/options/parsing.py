"""How options are read: their tables, the parsers of values, the sentences for what is missing, wrong or unknown.

An option that would be ignored is refused: a job that sets one expects its effect. Spark hands names over in lower case
or as written; they are compared without case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn


class OptionError(ValueError):
    """An option is missing, wrong or unknown; the message is one sentence for the user."""


Parser = Callable[[str, str], Any]


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option: its name as the Kafka connector spells it, what it sets, and what the reference says of it."""

    name: str
    field: str | None  # of the options object; None: the value is only checked
    parse: Parser
    default: str  # as the reference shows it
    about: str


#: What Java's `int` and `long` hold.
MOST_INT = 2**31 - 1
MOST_LONG = 2**63 - 1

#: What Spark adds or keeps for itself.
_SPARKS_OWN = frozenset({"queryname", "outputmode"})

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def parse(options: Mapping[str, str], table: Iterable[Option], doing: str) -> dict[str, Any]:
    """Return the values by field; raises `OptionError`."""
    known = {option.name.lower(): option for option in table}
    values: dict[str, Any] = {}
    for given, value in options.items():
        option = known.get(given.lower())
        if option is None:
            if given.lower() in _SPARKS_OWN:
                continue
            close = get_close_matches(given.lower(), known, n=1)
            hint = f"; did you mean '{known[close[0]].name}'?" if close else ""
            raise OptionError(f"format \"exacta\" does not know option '{given}' for {doing}{hint}")
        parsed = option.parse(option.name, value)
        if option.field is not None:
            values[option.field] = parsed
    return values


def text(name: str, value: str) -> str:
    """Parse a text that is not empty; raises `OptionError`."""
    if not value.strip():
        raise OptionError(f"option '{name}' is empty")
    return value.strip()


def flag(name: str, value: str) -> bool:
    """Parse true or false; raises `OptionError`."""
    if value.strip().lower() not in ("true", "false"):
        raise OptionError(f"option '{name}' must be true or false, not '{value}'")
    return value.strip().lower() == "true"


def positive(name: str, value: str) -> int:
    """Parse a whole number above 0 that Java's `int` holds, as in the protocol's fields; raises `OptionError`."""
    return _number(name, value, 1, MOST_INT, "a positive whole number")


def positive_long(name: str, value: str) -> int:
    """Parse a whole number above 0 that Java's `long` holds: counts of offsets and bytes; raises `OptionError`."""
    return _number(name, value, 1, MOST_LONG, "a positive whole number")


def whole(name: str, value: str) -> int:
    """Parse a whole number, 0 or above, that Java's `long` holds; raises `OptionError`."""
    return _number(name, value, 0, MOST_LONG, "a whole number, 0 or above")


def _number(name: str, value: str, least: int, most: int, kind: str) -> int:
    digits = value.strip()
    if not (digits.isascii() and digits.isdecimal()) or (least > 0 and not digits.strip("0")):
        raise OptionError(f"option '{name}' must be {kind}, not '{value}'")
    return at_most(name, digits, most)


def at_most(name: str, digits: str, most: int) -> int:
    """Return the number that decimal `digits` stand for; raises `OptionError` where it is above `most`."""
    # Python refuses to convert thousands of digits, with a sentence of its own.
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(most)) or int(significant) > most:
        raise OptionError(f"option '{name}' can be {most} at most, not {digits}")
    return int(significant)


def topics(name: str, value: str) -> tuple[str, ...]:
    """Parse a list of topics; raises `OptionError`."""
    found = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    if not found:
        raise OptionError(f"option '{name}' names no topic")
    return found


def one_of(*allowed: str) -> Callable[[str, str], str]:
    """Return the parser of one of `allowed`, in any case."""

    def parse(name: str, value: str) -> str:
        if value.strip().lower() not in allowed:
            raise OptionError(f"option '{name}' must be one of {', '.join(allowed)}, not '{value}'")
        return value.strip().lower()

    return parse


def json_object(name: str, value: str) -> dict[str, Any]:
    """Parse a JSON object; raises `OptionError`."""
    try:
        found = json.loads(value)
    except ValueError as error:
        raise OptionError(f"option '{name}' is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise OptionError(f"option '{name}' must be a JSON object of topics, not '{value}'")
    return found


def check_partitions_named(name: str, by_topic: Mapping[str, Collection[Any]]) -> None:
    """Refuse an object without topics, and a topic without partitions; raises `OptionError`."""
    if not by_topic:
        raise OptionError(f"option '{name}' names no topic")
    for topic, partitions in by_topic.items():
        if not partitions:
            raise OptionError(f"option '{name}' names no partition of topic '{topic}'")


def refused(why: str) -> Callable[[str, str], NoReturn]:
    """Return the parser of an option that is known, so that the refusal can say what to set instead."""

    def parse(name: str, value: str) -> NoReturn:
        raise OptionError(f"option '{name}' {why}")

    return parse


def refuse_without_effect(options: Iterable[str], names: Iterable[str], why: str) -> None:
    """Refuse those of `options` that are among `names`; raises `OptionError`."""
    given = {name.lower() for name in options}
    for name in names:
        if name.lower() in given:
            raise OptionError(f"option '{name}' has no effect {why}: leave it out")


def path_instead_of(instead: str) -> Callable[[str, str], None]:
    """Return the parser of `path`, which is what `load("orders")`, `save("orders")` and `start("orders")` set.

    The location of a table in Spark's catalog, which Spark sets by itself, is a URI; no topic's name is.
    """

    def parse(name: str, value: str) -> None:
        if not _URI.match(value):
            raise OptionError(f"option '{name}' ('{value}') has no effect: name topics in option '{instead}'")

    return parse


def refuse_unless(*allowed: str) -> Callable[[str, str], None]:
    """Return the parser of an option that exactly once leaves no choice about."""

    def parse(name: str, value: str) -> None:
        if value.strip().lower() not in allowed:
            raise OptionError(f"option '{name}' can only be {' or '.join(allowed)}: exactly once depends on it")

    return parse
