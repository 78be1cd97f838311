"""The syntax of `.properties` files (java.util.Properties) as far as Kafka's files use it."""

import re
from collections.abc import Iterator

_SPACE = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
"""Java's: a password may hold what Unicode takes for an end of a line, or for a blank."""
_LINE = re.compile(r"((?:[^\\ \t\f=:]|\\.)*)([ \t\f]*[=: \t\f]?[ \t\f]*)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Return the keys and values of a `.properties` text; a later key wins."""
    return {key: value or "" for _, key, value in entries(text)}


def entries(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield the number of the line, the key and the value of each entry; None where nothing follows the key."""
    lines = enumerate(_LINE_END.split(text), start=1)
    for number, line in lines:
        logical = line.lstrip(_SPACE)
        if not logical or logical[0] in "#!":
            continue
        # An odd number of backslashes at the end: the next line goes on.
        while (len(logical) - len(logical.rstrip("\\"))) % 2:
            logical = logical[:-1] + next(lines, (0, ""))[1].lstrip(_SPACE)
        match = _LINE.fullmatch(logical)
        assert match is not None  # it matches anything
        yield number, _unescaped(match[1]), _unescaped(match[3]) if match[2] else None


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else _ESCAPED.get(m[1], m[1]), text)
