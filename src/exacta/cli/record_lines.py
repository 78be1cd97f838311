"""Make a record of a line, as `exacta produce` does: as it is, with a key before its value, or as JSON."""

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from exacta.client.topic_writer import NewRecord

_MOST_MS = 1 << 62


class NoRecord(Exception):
    """A line is no record. The message is one sentence, with the line's number."""


class Line(NamedTuple):
    """A line of the input; the first one has the number 1."""

    number: int
    text: bytes


class Reading(NamedTuple):
    """The meaning of a line."""

    delimiter: bytes = b"\n"
    key: bytes | None = None
    key_delimiter: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    json: bool = False
    empty_is_null: bool = False

    def record(self, line: Line) -> "NewRecord":
        """Return the record of a line; raises `NoRecord`."""
        from exacta.client.topic_writer import NewRecord

        if self.json:
            return self._of_json(line)
        key, value = self.key, line.text
        if self.key_delimiter is not None:
            before, found, behind = line.text.partition(self.key_delimiter)
            if found:
                key, value = before, behind
        return NewRecord(self._content(key), self._content(value), self.headers)

    def _content(self, data: bytes | None) -> bytes | None:
        return None if self.empty_is_null and not data else data

    def _of_json(self, line: Line) -> "NewRecord":
        from exacta.client.topic_writer import NewRecord

        try:
            found = json.loads(line.text)
        except (ValueError, RecursionError) as error:  # also where it is no UTF-8
            raise NoRecord(f"line {line.number} is no JSON: {error}") from error
        if not isinstance(found, dict) or not {"payload", "payload_base64"} & found.keys():
            raise NoRecord(f"line {line.number} is no JSON object with a payload")
        timestamp_ms = found.get("ts")
        if timestamp_ms is not None and not (type(timestamp_ms) is int and 0 <= timestamp_ms < _MOST_MS):
            raise NoRecord(f"line {line.number}: ts is no number of ms since 1970")
        try:
            return NewRecord(
                _bytes_of(found, "key"),
                _bytes_of(found, "payload"),
                (*self.headers, *_headers_of(found.get("headers") or [])),
                timestamp_ms,
            )
        except ValueError as error:
            raise NoRecord(f"line {line.number}: {error}") from error


def _bytes_of(found: dict[str, Any], name: str) -> bytes | None:
    if name not in found and f"{name}_base64" in found:
        encoded = found[f"{name}_base64"]
        if not isinstance(encoded, str):
            raise ValueError(f"{name}_base64 is no string")
        return b64decode(encoded, validate=True)
    return _encoded(found.get(name))


def _encoded(value: object) -> bytes | None:
    """Return a string as its bytes, and anything else but null as JSON."""
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()


def _headers_of(found: object) -> list[tuple[str, bytes | None]]:
    """Return headers from an object, or from kcat's list of names and values by turns; raises ValueError."""
    if isinstance(found, dict):
        return [(name, _encoded(value)) for name, value in found.items()]
    if not isinstance(found, list) or len(found) % 2 or not all(isinstance(name, str) for name in found[::2]):
        raise ValueError("headers is neither an object nor a list of names and values by turns")
    return [(name, _encoded(value)) for name, value in zip(found[::2], found[1::2], strict=True)]
