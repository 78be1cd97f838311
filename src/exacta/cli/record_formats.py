"""Write a record as `exacta consume` does: kcat's format strings, and its JSON.

A format string is taken apart once, and each record then costs a few calls. What a record holds is bytes, which are
written as they are.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from exacta.cli.output import json_text

if TYPE_CHECKING:
    from exacta.client.tail import ReceivedRecord

_NULL = b"NULL"
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_TOKEN = re.compile(r"%(.?)", re.DOTALL)

Part = Callable[["ReceivedRecord"], bytes]


class WrongFormat(ValueError):
    """A format string, or a delimiter, says something that there is not. The message is one sentence."""


def unescaped(text: str) -> bytes:
    r"""Return a text with its escapes (\n, \r, \t, \0, \\ and \xFF) as the bytes that they stand for.

    Raises `WrongFormat`.
    """
    found, at = [], 0
    for escape in _ESCAPE.finditer(text):
        found.append(text[at : escape.start()].encode(errors="surrogateescape"))
        at = escape.end()
        if len(escape[1]) == 3:
            found.append(bytes([int(escape[1][1:], 16)]))
        elif escape[1] in _ESCAPED:
            found.append(_ESCAPED[escape[1]])
        else:
            raise WrongFormat(f"there is no escape {escape[0]}")
    return b"".join([*found, text[at:].encode(errors="surrogateescape")])


def format_of(text: str, *, show_null: bool = False) -> Part:
    """Return what writes a record as a format string says; raises `WrongFormat`.

    With `show_null` keys and values that are null are written as NULL.
    """
    null = _NULL if show_null else b""
    tokens: dict[str, Part] = {
        "s": lambda record: null if record.value is None else record.value,
        "S": lambda record: _size(record.value),
        "k": lambda record: null if record.key is None else record.key,
        "K": lambda record: _size(record.key),
        "t": lambda record: record.partition.topic.encode(),
        "p": lambda record: b"%d" % record.partition.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % record.timestamp_ms,
        "h": lambda record: b",".join(b"%s=%s" % (name, _NULL if v is None else v) for name, v in record.headers),
        "%": lambda record: b"%",
    }
    parts: list[Part] = []
    at = 0
    for token in _TOKEN.finditer(text):
        if token[1] not in tokens:
            raise WrongFormat(f"there is no {token[0]}: the tokens are {', '.join(f'%{each}' for each in tokens)}")
        parts += [_literal(unescaped(text[at : token.start()])), tokens[token[1]]]
        at = token.end()
    parts.append(_literal(unescaped(text[at:])))
    return lambda record: b"".join([part(record) for part in parts])


def _literal(text: bytes) -> Part:
    return lambda record: text


def _size(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def as_json(record: "ReceivedRecord") -> bytes:
    """Return a record as one line of JSON with kcat's names. What is no UTF-8 is in a field `…_base64` instead."""
    found: dict[str, Any] = {
        "topic": record.partition.topic,
        "partition": record.partition.partition,
        "offset": record.offset,
        "tstype": "logappend" if record.is_append_time else "create",
        "ts": record.timestamp_ms,
    }
    if record.headers:
        found["headers"] = [part for name, value in record.headers for part in (_text(name), _text(value))]
    for name, data in (("key", record.key), ("payload", record.value)):
        try:
            found[name] = None if data is None else data.decode()
        except UnicodeDecodeError:
            assert data is not None
            found[f"{name}_base64"] = b64encode(data).decode()
    return json_text(found).encode() + b"\n"


def _text(data: bytes | None) -> str | None:
    """Return a part of a header; what is no UTF-8 of it is written as escapes, as Python writes bytes."""
    return None if data is None else data.decode(errors="backslashreplace")
