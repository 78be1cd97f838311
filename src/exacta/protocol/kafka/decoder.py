"""Compiles (structure class, version) into one Python function that decodes it.

Theory of operation. The function is written for exactly one version: it tests no version and walks no schema. Fields of
fixed width that lie side by side are read by one precompiled `struct`, and so is the length prefix of what follows them
(in flexible versions its first byte, which nearly always is the whole prefix). Nested structures are in line, so the
depth of recursion is zero whatever the input says. A count or length is compared with the bytes received before
anything is allocated or looped over by it; `left` is how many elements the arrays may still have, all taken together.

A message with record bytes is decoded from a memoryview, so that they can be handed on as a slice. Any other is small
and decoded from `bytes`, whose slices and texts are twice as fast.
"""

import struct
from collections.abc import Callable
from typing import Any

from exacta.protocol.kafka import primitives
from exacta.protocol.kafka.schema import (
    Array,
    Buffer,
    Bytes,
    FieldLayout,
    Fixed,
    Layout,
    Nested,
    RecordBytes,
    String,
    Structure,
    has_records,
    layout,
)
from exacta.protocol.kafka.source import (
    SHORT_ARRAY,
    SourceWriter,
    element_size,
    least_size,
    short_arrays,
    struct_name,
    struct_of,
)

Decoder = Callable[[Buffer, int, int], Any]
"""Decode the message that starts at a position of a buffer and has at most this many elements of arrays."""

_NAMESPACE = {
    name: getattr(primitives, name)
    for name in ("bad_length", "bad_tag", "read_string_length", "read_uvarint", "skip_tags", "too_many_elements")
}


def compile_decoder(structure: type[Structure], version: int, flexible: bool) -> Decoder:
    """Return the decoder of `structure` in `version`."""
    writer = _DecoderWriter(version, flexible, has_records(structure, version))
    return writer.compile(structure)


class _DecoderWriter:
    def __init__(self, version: int, flexible: bool, view: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._view = view
        self._source = SourceWriter(_NAMESPACE)
        self._run: list[tuple[str, str]] = []

    def compile(self, structure: type[Structure]) -> Decoder:
        line = self._source.line
        with self._source.block("def decode(buffer, position, left):"):
            if self._view:
                line("if type(buffer) is not memoryview: buffer = memoryview(buffer)")
            else:
                line("buffer = bytes(buffer)")
            line("end = len(buffer)")
            line(f"return {self._structure(layout(structure, self._version), 0)}")
        return self._source.build("decode", f"<decoder of {structure.__name__} v{self._version}>")

    def _structure(self, of: Layout, depth: int) -> str:
        """Emit the reading of a structure; return the expression that makes it."""
        for field in of.fields:
            self._field(field, f"{field.name}_{depth}", depth)
        if self._flexible:
            self._tags(of, depth)
        self._flush()
        name = self._source.constant(of.structure.__name__, of.structure)
        values = (f"{field.name}={field.name}_{depth}" for field in of.fields + of.tagged)
        return f"{name}({', '.join(values)})"

    def _field(self, field: FieldLayout, target: str, depth: int) -> None:
        match field.wire:
            case Fixed() as wire:
                self._run.append((wire.code, target))
            case Array() as wire:
                self._array(field, wire, target, depth)
            case String():
                self._string(field.name, target, field.nullable)
            case Bytes():
                self._sized(field, target, "buffer[position:stop].tobytes()" if self._view else "buffer[position:stop]")
            case RecordBytes():
                self._sized(field, target, "buffer[position:stop]")
            case Nested():
                self._nested(field, target, depth)
            case _:
                raise TypeError(f"{field.name}: {type(field.wire).__name__} has no place of its own on the wire")

    def _flush(self) -> None:
        """Emit one read for the fields of fixed width that have gathered."""
        if not self._run:
            return
        codes = "".join(code for code, _ in self._run)
        targets = ", ".join(target for _, target in self._run)
        self._run.clear()
        if codes == "B":
            self._source.line(f"{targets} = buffer[position]")
            self._source.line("position += 1")
            return
        packed = struct_of(codes)
        unpack = self._source.constant(struct_name("unpack", codes), packed.unpack_from)
        self._source.line(f"{targets}, = {unpack}(buffer, position)")
        self._source.line(f"position += {packed.size}")

    def _prefix(self, code: str, target: str = "n", read: str = "read_uvarint") -> None:
        """Emit the read of a length prefix into `target`: one more than the length in flexible versions."""
        self._run.append(("B" if self._flexible else code, target))
        self._flush()
        if self._flexible:
            self._source.line(f"if {target} > 127: {target}, position = {read}(buffer, position - 1)")

    def _string(self, name: str, target: str, nullable: bool) -> None:
        self._prefix("h", read="read_string_length")
        text = "buffer[position:stop].tobytes().decode()" if self._view else "buffer[position:stop].decode()"
        self._content(name, target, nullable, text)

    def _sized(self, field: FieldLayout, target: str, slice_: str) -> None:
        self._prefix("i")
        self._content(field.name, target, field.nullable, slice_)

    def _content(self, name: str, target: str, nullable: bool, value: str) -> None:
        """Emit what follows a length prefix: `value` is the expression over the bytes from `position` to `stop`."""
        line = self._source.line
        null = "n < 1" if self._flexible else "n < 0"
        length = "n - 1" if self._flexible else "n"
        refusal = f"bad_length({name!r}, {'n' if self._flexible else 'n + 1'}, end - position)"
        if nullable:
            line(f"if {null}: {target} = None")
            with self._source.block("else:"):
                line(f"stop = position + {length}")
                line(f"if stop > end: {refusal}")
                line(f"{target} = {value}")
                line("position = stop")
        else:
            line(f"stop = position + {length}")
            line(f"if {null} or stop > end: {refusal}")
            line(f"{target} = {value}")
            line("position = stop")

    def _nested(self, field: FieldLayout, target: str, depth: int) -> None:
        line = self._source.line
        assert field.structure is not None
        of = layout(field.structure, self._version)
        if not field.nullable:
            line(f"{target} = {self._structure(of, depth + 1)}")
            return
        self._run.append(("b", "present"))
        self._flush()
        line(f"if present < 0: {target} = None")
        with self._source.block("else:"):
            line(f"{target} = {self._structure(of, depth + 1)}")

    def _array(self, field: FieldLayout, wire: Array, target: str, depth: int) -> None:
        line = self._source.line
        self._prefix("i")
        if self._flexible:
            line("n -= 1")
        size = (
            least_size(field.structure, self._version, self._flexible)
            if wire.of is None and field.structure is not None
            else element_size(wire.of or Bytes, self._flexible)
        )
        too_many = f"n * {size} > end - position" if size > 1 else "n > end - position"
        if field.nullable:
            with self._source.block("if n < 0:"):
                line(f"{target} = None")
            with self._source.block("else:"):
                line(f"if {too_many}: bad_length({field.name!r}, n + 1, end - position)")
                self._elements(field, wire, target, size, depth)
        else:
            line(f"if n < 0 or {too_many}: bad_length({field.name!r}, n + 1, end - position)")
            self._elements(field, wire, target, size, depth)

    def _elements(self, field: FieldLayout, wire: Array, target: str, size: int, depth: int) -> None:
        line = self._source.line
        line("left -= n")
        line("if left < 0: too_many_elements()")
        if wire.of is not None and issubclass(wire.of, Fixed):
            code = wire.of.code
            short = self._source.constant(f"unpack_short_{code}", [one.unpack_from for one in short_arrays(code)])
            self._source.constant("unpack_from", struct.unpack_from)
            line(f"if n <= {SHORT_ARRAY}: {target} = list({short}[n](buffer, position))")
            line(f'else: {target} = list(unpack_from(f">{{n}}{code}", buffer, position))')
            line(f"position += n * {size}")
            return
        line(f"{target} = []")
        line(f"add_{depth} = {target}.append")
        with self._source.block("for _ in range(n):"):
            if wire.of is not None:
                self._string(field.name, "text", nullable=False)
                line(f"add_{depth}(text)")
            elif field.structure is not None:
                element = self._structure(layout(field.structure, self._version), depth + 1)
                line(f"add_{depth}({element})")

    def _tags(self, of: Layout, depth: int) -> None:
        """Emit the tag section that ends a flexible structure."""
        line = self._source.line
        count = f"tags_{depth}"
        self._prefix("B", count)
        if not of.tagged:
            line(f"if {count}: position = skip_tags(buffer, position, end, {count})")
            return
        for field in of.tagged:
            line(f"{field.name}_{depth} = {field.default!r}")
        with self._source.block(f"for _ in range({count}):"):
            line("tag, position = read_uvarint(buffer, position)")
            line("size, position = read_uvarint(buffer, position)")
            line(f"limit_{depth} = position + size")
            line(f'if limit_{depth} > end: bad_length("tagged field", size + 1, end - position)')
            word = "if"
            for field in of.tagged:
                with self._source.block(f"{word} tag == {field.wire.tag}:"):
                    self._tagged(field, depth)
                    line(f"if position != limit_{depth}: bad_tag({field.name!r})")
                word = "elif"
            line(f"position = limit_{depth}")

    def _tagged(self, field: FieldLayout, depth: int) -> None:
        target = f"{field.name}_{depth}"
        if isinstance(field.wire, Nested) and field.structure is not None:
            value = self._structure(layout(field.structure, self._version), depth + 1)
            self._source.line(f"{target} = {value}")
        else:
            self._field(field, target, depth)
            self._flush()
