"""Parse `kafka.sasl.jaas.config`, the login in the syntax of JAAS, as the Java client takes it.

    org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="…";

This module owns the syntax, as Kafka's own parser has it: words, quotes of both kinds with backslashes in them,
comments, one entry that a semicolon ends. Only the two modules that log in by name and password are known. No error
shows a value.
"""

import re
from typing import NamedTuple

from exacta.spark.options.parsing import OptionError

PLAIN_MODULE = "PlainLoginModule"
SCRAM_MODULE = "ScramLoginModule"

# Some platforms ship Kafka's classes under another root; what follows it tells them.
_MODULE = re.compile(
    r"(?:.*\.)?org\.apache\.kafka\.common\.security\.(?:plain|scram)\.(PlainLoginModule|ScramLoginModule)"
)

_TOKEN = re.compile(
    r"""
    \s+ | //[^\n]* | /\*.*?\*/                             # between tokens
    | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<sign>[=;])
    | (?P<word>[^\s=;"'/]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Login(NamedTuple):
    """The content of a JAAS entry."""

    module: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.module}, {self.username!r})"


class _Token(NamedTuple):
    kind: str
    text: str


def parse_jaas(name: str, value: str) -> Login:
    """Return the login in a JAAS configuration; raises `OptionError`."""
    tokens = _tokens(name, value)
    if len(tokens) < 2 or any(token.kind == "sign" for token in tokens[:2]):
        raise OptionError(f"option '{name}' must begin with a login module and 'required'")
    known = _MODULE.fullmatch(tokens[0].text)
    if known is None:
        raise OptionError(
            f"option '{name}' names login module '{tokens[0].text}'; known are org.apache.kafka.common.security.plain."
            f"{PLAIN_MODULE} and org.apache.kafka.common.security.scram.{SCRAM_MODULE}"
        )
    if tokens[1].text.lower() not in ("required", "requisite", "sufficient", "optional"):
        raise OptionError(f"option '{name}' must say 'required' after the login module")
    if tokens[-1] != _Token("sign", ";"):
        raise OptionError(f"option '{name}' must end with a semicolon")
    values = _values(name, tokens[2:-1])
    if unknown := sorted(values.keys() - {"username", "password"}):
        raise OptionError(f"option '{name}' sets '{unknown[0]}', which has no effect here")
    if missing := [key for key in ("username", "password") if not values.get(key)]:
        raise OptionError(f"option '{name}' sets no {missing[0]}")
    return Login(known[1], values["username"], values["password"])


def _values(name: str, tokens: list[_Token]) -> dict[str, str]:
    values: dict[str, str] = {}
    for at in range(0, len(tokens), 3):
        kinds = [(token.kind, token.text) for token in tokens[at : at + 3]]
        if len(kinds) < 3 or kinds[1] != ("sign", "=") or kinds[0][0] == "sign" or kinds[2][0] == "sign":
            raise OptionError(f"option '{name}' must go on with key=\"value\" pairs, and hold one entry")
        values[kinds[0][1]] = kinds[2][1]
    return values


def _tokens(name: str, value: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(value):
        found = _TOKEN.match(value, at)
        if found is None:
            raise OptionError(f"option '{name}' has a quote that is not closed, or a stray character, at {at + 1}")
        at = found.end()
        if found.lastgroup == "quoted":
            tokens.append(_Token("text", _ESCAPE.sub(_unescaped, found[0][1:-1])))
        elif found.lastgroup is not None:
            tokens.append(_Token("sign" if found.lastgroup == "sign" else "text", found[0]))
    return tokens


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 8)) if found[1].isdigit() and found[1] < "8" else _ESCAPED.get(found[1], found[1])
