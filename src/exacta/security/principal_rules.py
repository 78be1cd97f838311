"""Kafka's `ssl.principal.mapping.rules`: how the name in a certificate becomes the name of a principal.

This module owns the syntax and the meaning, which are those of Apache Kafka's SslPrincipalMapper (KIP-371, KIP-492):

    RULE:pattern/replacement/[LU], …, DEFAULT

A backslash keeps a slash in a pattern or a replacement. A rule fits where its pattern matches the whole name; then each
match in the name gives way to the replacement, in which $1 is a group and a backslash keeps a dollar sign. DEFAULT fits
every name and leaves it as it is. The first rule that fits counts, and a name that none fits is no principal.

Patterns are matched by RE2, in linear time, since names come from clients. A pattern that only Java can match (it looks
ahead, or refers back) is refused when it is read. So is a replacement that names a group which its pattern has not,
where Kafka fails with each client; where a pattern has groups, but not as many, the text stays as in Kafka.

A name that may be nobody's is refused (`exacta.core.values.users`): names go into logs and rules.

It reads bytes before a login.
"""

import re
from typing import Any

import re2
from msgspec import Struct

from exacta.core.values.users import problem_of

DEFAULT = "DEFAULT"
_SHOWN = 1_024
"""This many characters of a name in a certificate are shown, where it is refused."""
_RULE = "RULE:"
_PART = re.compile(r"(?:\\.|[^\\/])*/")
"""A pattern or a replacement, and the slash that ends it."""
_CASE = re.compile(r"([LU]?)\s*(?:,|$)")
_KEEP = re.compile(r"DEFAULT\s*(?:,|$)")
_BETWEEN = re.compile(r"[\s,]*")
_REFERENCE = re.compile(r"\\(?P<kept>.)|\$(?P<number>\d+)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}|(?P<bad>[\\$])", re.S)

_Piece = str | int
"""A text, or the number of a group."""


class RuleError(ValueError):
    """A rule that cannot be read; the message is for the user."""


class Rule(Struct, frozen=True, kw_only=True):
    """One rule. Without a pattern it is DEFAULT."""

    text: str
    pattern: Any = None
    replacement: tuple[_Piece, ...] = ()
    case: str = ""

    def applied(self, name: str) -> str | None:
        """Return the name of the principal, or None where the rule does not fit."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        found, end = [], 0
        for match in self.pattern.finditer(name):
            found.append(name[end : match.start()])
            found += [each if isinstance(each, str) else match.group(each) or "" for each in self.replacement]
            end = match.end()
        mapped = "".join(found) + name[end:]
        return {"L": mapped.lower, "U": mapped.upper}.get(self.case, mapped.__str__)()


class PrincipalRules:
    """The rules in their order."""

    def __init__(self, text: str) -> None:
        """Read the rules. Raises RuleError."""
        self.rules = tuple(_read(text))
        if not self.rules:
            raise RuleError("there is no rule")

    def name_of(self, owner: str) -> str:
        """Return the name of the principal for the owner of a certificate. Raises ValueError where there is none."""
        where = f"the owner of its certificate, {owner[:_SHOWN]!a}"
        for rule in self.rules:
            mapped = rule.applied(owner)
            if mapped is not None:
                break
        else:
            raise ValueError(f"no rule of ssl.principal.mapping.rules fits {where}")
        problem = problem_of(mapped)
        if problem is not None:
            raise ValueError(f"{where}, has a name by ssl.principal.mapping.rules that {problem}")
        return mapped


def _read(text: str) -> list[Rule]:
    rules: list[Rule] = []
    text, position = text.strip(), 0
    while True:
        position = _end(_BETWEEN, text, position)
        if position == len(text):
            return rules
        rule, position = _next_rule(text, position)
        rules.append(rule)


def _next_rule(text: str, begin: int) -> tuple[Rule, int]:
    if (kept := _KEEP.match(text, begin)) is not None:
        return Rule(text=DEFAULT), kept.end()
    if not text.startswith(_RULE, begin):
        raise RuleError(f"a rule is {DEFAULT} or {_RULE}pattern/replacement/, and none begins at {text[begin:]!r}")
    pattern_at = begin + len(_RULE)
    replacement_at = _end(_PART, text, pattern_at)
    case_at = _end(_PART, text, replacement_at)
    ends = _CASE.match(text, case_at)
    if ends is None or pattern_at == replacement_at or replacement_at == case_at:
        raise RuleError(f"a rule is {_RULE}pattern/replacement/, maybe with L or U behind it, not {text[begin:]!r}")
    pattern, replacement = text[pattern_at : replacement_at - 1], text[replacement_at : case_at - 1]
    compiled = _compiled(pattern)
    rule = Rule(
        text=text[begin : ends.end(1)],
        pattern=compiled,
        replacement=_pieces(replacement, compiled),
        case=ends.group(1),
    )
    return rule, ends.end()


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return position if found is None else found.end()


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    # As in Java a slash may be escaped, which is nothing that RE2 knows.
    text = re.sub(r"\\(.)", lambda each: "/" if each.group(1) == "/" else each.group(), pattern, flags=re.S)
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise RuleError(f"the pattern {pattern!r} cannot be read (RE2): {reason}") from error


def _pieces(replacement: str, pattern: Any) -> tuple[_Piece, ...]:
    pieces: list[_Piece] = []
    end = 0
    for found in _REFERENCE.finditer(replacement):
        pieces.append(replacement[end : found.start()])
        end = found.end()
        if found["bad"] is not None:
            raise RuleError(
                f"{replacement!r} has a {found['bad']} that stands for nothing; a backslash before keeps it"
            )
        if found["kept"] is not None:
            pieces.append(found["kept"])
        elif found["name"] is not None:
            if found["name"] not in pattern.groupindex:
                raise RuleError(f"{replacement!r} names the group {found['name']}, which its pattern has not")
            pieces.append(pattern.groupindex[found["name"]])
        else:
            pieces += _numbered(found["number"], pattern.groups, replacement)
    return tuple(each for each in (*pieces, replacement[end:]) if each != "")


def _numbered(digits: str, groups: int, replacement: str) -> list[_Piece]:
    """Return the group that the first digits name, as many as there is a group for, and the other digits as text."""
    number, used = int(digits[0]), 1
    if number > groups:
        if not groups:
            raise RuleError(f"{replacement!r} names the group {number}, and its pattern has none")
        return [f"${digits}"]
    while used < len(digits) and number * 10 + int(digits[used]) <= groups:
        number, used = number * 10 + int(digits[used]), used + 1
    return [number, digits[used:]]
