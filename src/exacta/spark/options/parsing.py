"""Read options: this module has the form of their tables, the parsers of values, and the sentences for mistakes.

One error says everything that is wrong with a mapping of options, so that a user who moves a job mends it in one go. An
option that is not known is refused, and so is one whose effect would be missed. Kafka's Java clients have many options
that can change nothing here, and each release of Kafka has others. So one that begins with `kafka.` and is not known is
accepted, and the log says so. It is refused all the same if it is a known option misspelt, or would say who may read.
`kafka_clients.py` has those that are refused by their names. Spark hands names over in lower case or as written, so
they are compared without case.
"""

import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from msgspec import Struct

from exacta.spelling import did_you_mean, is_misspelt

logger = logging.getLogger("exacta.spark")


class OptionError(ValueError):
    """Options are missing, wrong or unknown; the message says in one sentence for each what is to be done."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Return one sentence for each problem."""
        return self.args

    def __str__(self) -> str:
        if len(self.args) == 1:
            return str(self.args[0])
        return "\n".join((f"there are {len(self.args)} problems:", *(f"- {each}" for each in self.args)))


Parser = Callable[[str, str], Any]


class Option(Struct, frozen=True, kw_only=True):
    """One option: its name as the Kafka connector spells it, what it sets, and what the reference says of it."""

    name: str
    field: str | None  # of the options object; None: the value is only checked
    parse: Parser
    default: str  # as the reference shows it
    about: str


MOST_INT = 2**31 - 1
"""The largest values of Java's `int` and `long`."""
MOST_LONG = 2**63 - 1

_SPARKS_OWN = frozenset({"queryname", "outputmode"})
"""The options that Spark adds or keeps for itself."""

_PREFIX = "kafka."

_OF_SECURITY = ("kafka.ssl.", "kafka.security.")
"""The beginnings of options that say who may read or write: what is not known of them is refused."""

_OF_THE_JAVA_READER = frozenset(
    {"groupidprefix", "kafkaconsumer.polltimeoutms", "fetchoffset.numretries", "fetchoffset.retryintervalms"}
)
"""The options by which Spark's own source tunes its consumers in Java."""

_UNKNOWN = "unknown here"

_NEAR = 0.75
"""A name that is at least this near to a known one counts as that name misspelt, as difflib's ratio."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")

_said: set[str] = set()
"""The lines on options without effect that this process has logged, since sources and sinks are made for every
batch."""


class Parsed(Struct, kw_only=True):
    """The values of options, and everything that is wrong with them."""

    values: dict[str, Any] = {}  # by field
    problems: list[str] = []
    wrong: set[str] = set()  # fields whose option is given, with a value that is refused
    without_effect: dict[str, str] = {}  # why, by the option's name

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note what the block refuses, instead of raising it."""
        try:
            yield
        except OptionError as error:
            self.problems += error.problems

    def lacks(self, name: str) -> bool:
        """Return whether the option of a field is not given at all."""
        return self.values.get(name) is None and name not in self.wrong

    def finished(self) -> dict[str, Any]:
        """Return the values, and log what has no effect; raises `OptionError` with all that is wrong."""
        if self.problems:
            raise OptionError(*self.problems)
        line = self.notice()
        if line is not None and line not in _said:
            _said.add(line)
            logger.warning("%s", line)
        return self.values

    def notice(self) -> str | None:
        """Return the line of the log about options that have no effect, None where there are none."""
        if not self.without_effect:
            return None
        by_reason: dict[str, list[str]] = {}
        for name, why in sorted(self.without_effect.items()):
            by_reason.setdefault(why, []).append(name)
        reasons = "; ".join(f"{', '.join(names)} ({why})" for why, names in by_reason.items())
        return f'options without effect with format "exacta": {reasons}'.replace("`", "'")


def parse(options: Mapping[str, str], table: Iterable[Option], doing: str) -> Parsed:
    """Return what options say, and what is wrong with each of them."""
    known = {option.name.lower(): option for option in table}
    parsed = Parsed()
    for given, value in options.items():
        name = given.lower()
        option = known.get(name)
        if option is not None:
            try:
                found = option.parse(option.name, value)
            except OptionError as error:
                parsed.problems += error.problems
                parsed.wrong.update(() if option.field is None else (option.field,))
                continue
            if option.field is not None:
                parsed.values[option.field] = found
        elif name in _OF_THE_JAVA_READER or _is_of_the_java_clients(name, known):
            parsed.without_effect[given] = _UNKNOWN
        elif name not in _SPARKS_OWN:
            parsed.problems.append(_unknown(given, [each.name for each in known.values()], doing))
    return parsed


def _is_of_the_java_clients(name: str, known: Iterable[str]) -> bool:
    """Return whether an option that is not known can be one of Kafka's that has no effect here."""
    is_free = name.startswith(_PREFIX) and not name.startswith(_OF_SECURITY)
    return is_free and not any(is_misspelt(name, each) for each in known)


def _unknown(given: str, names: Iterable[str], doing: str) -> str:
    """Return the sentence for a name that is not known, with the one that it may stand for.

    The prefix does not count: with it, all Kafka names are alike.
    """
    meant = did_you_mean(given, names, least_ratio=_NEAR, key=_stem, quote="'")
    return f"format \"exacta\" does not know option '{given}' for {doing}; {meant or 'leave it out'}"


def _stem(name: str) -> str:
    return name.lower().removeprefix(_PREFIX)


def as_text(options: Mapping[str, object]) -> dict[str, str]:
    """Return options of any type as Spark's `option` would hand them on."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
        if value is not None
    }


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
    found = [f"option '{name}' has no effect {why}: leave it out" for name in names if name.lower() in given]
    if found:
        raise OptionError(*found)


def path_instead_of(instead: str) -> Callable[[str, str], None]:
    """Return the parser of `path`, which is what `load("orders")`, `save("orders")` and `start("orders")` set.

    The location of a table in Spark's catalog, which Spark sets by itself, is a URI, and no topic's name is one.
    """

    def parse(name: str, value: str) -> None:
        if not _URI.match(value):
            raise OptionError(f"option '{name}' ('{value}') has no effect: name topics in option '{instead}'")

    return parse


def only(*allowed: str, why: str) -> Callable[[str, str], None]:
    """Return the parser of an option that leaves no choice."""

    def parse(name: str, value: str) -> None:
        if value.replace(" ", "").lower() not in (each.lower() for each in allowed):
            raise OptionError(f"option '{name}' can only be {' or '.join(allowed)}, not '{value}': {why}")

    return parse
