"""Python source that is written by a program: what the decoder's and the encoder's compiler share."""

import linecache
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from exacta.protocol.kafka.schema import Array, Fixed, Layout, Nested, String, Structure, Wire, layout

SHORT_ARRAY: Final = 16
"""Arrays of scalars up to this length are read and written by precompiled structs."""


class SourceWriter:
    """Collects lines of one function and the constants that it refers to."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = dict(namespace)
        self._lines: list[str] = []
        self._indent = 0

    def line(self, text: str) -> None:
        """Add one line at the present depth."""
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add `head` and indent what follows."""
        self.line(head)
        self._indent += 1
        yield
        self._indent -= 1

    def constant(self, name: str, value: Any) -> str:
        """Bind `value` for the function; equal names must mean equal values."""
        self._namespace[name] = value
        return name

    def build(self, function: str, title: str) -> Callable[..., Any]:
        """Compile the lines and return the function named `function`; tracebacks show its source under `title`."""
        text = "\n".join(self._lines) + "\n"
        linecache.cache[title] = (len(text), None, text.splitlines(keepends=True), title)
        exec(compile(text, title, "exec"), self._namespace)
        built: Callable[..., Any] = self._namespace[function]
        return built


def struct_of(codes: str) -> struct.Struct:
    """Return the precompiled big-endian struct for `codes`."""
    return struct.Struct(">" + codes)


@cache
def short_arrays(codes: str) -> list[struct.Struct]:
    """Return the structs for arrays of 0, 1, 2, ... scalars, for the lengths that arrays nearly always have."""
    return [struct_of(codes * length) for length in range(SHORT_ARRAY + 1)]


def struct_name(prefix: str, codes: str) -> str:
    """Name a function of the struct for `codes`: the bool's letter is no identifier."""
    return f"{prefix}_{codes.replace('?', 'T')}"


def element_size(wire: type[Wire], flexible: bool) -> int:
    """Return the least number of bytes that one scalar of an array takes."""
    if issubclass(wire, Fixed):
        return struct_of(wire.code).size
    if issubclass(wire, String):
        return 1 if flexible else 2
    return 1 if flexible else 4


def least_size(structure: type[Structure], version: int, flexible: bool) -> int:
    """Return the least number of bytes that `structure` takes in `version`; never zero, so that it bounds a count."""
    return max(1, _least_size(layout(structure, version), flexible))


def _least_size(of: Layout, flexible: bool) -> int:
    size = 1 if flexible else 0
    for field in of.fields:
        if isinstance(field.wire, Array):
            size += 1 if flexible else 4
        elif isinstance(field.wire, Nested):
            size += 1 if flexible or field.nullable else 0
        else:
            size += element_size(type(field.wire), flexible)
    return size
