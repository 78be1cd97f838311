"""Compiles (structure class, version) into one Python function that encodes it.

Theory of operation. As for the decoder: one function per version, nested structures in line, adjacent fields of fixed
width packed together with the length prefix that follows them. The function gathers pieces and joins them once; record
bytes are never joined: they end one buffer of the scatter list and go into it as they are.

A field that the version does not have is left out, whatever its value: who speaks to old brokers must know what they
cannot be told.
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
from exacta.protocol.kafka.source import SHORT_ARRAY, SourceWriter, short_arrays, struct_name, struct_of

Encoder = Callable[[Any], list[Buffer]]
"""Encode a message into a list of buffers."""

_NAMESPACE = {
    name: getattr(primitives, name) for name in ("record_buffers", "string_length", "tagged_field", "uvarint")
} | {"BYTE": [bytes((value,)) for value in range(0x80)]}

_PAD = "x"
"""Struct code of a zero byte: an empty tag section."""


def compile_encoder(structure: type[Structure], version: int, flexible: bool) -> Encoder:
    """Return the encoder of `structure` in `version`."""
    return _EncoderWriter(version, flexible, has_records(structure, version)).compile(structure)


class _EncoderWriter:
    def __init__(self, version: int, flexible: bool, scatter: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._scatter = scatter
        self._source = SourceWriter(_NAMESPACE)
        self._run: list[tuple[str, str]] = []
        self._put = "put"

    def compile(self, structure: type[Structure]) -> Encoder:
        line = self._source.line
        with self._source.block("def encode(message):"):
            line("pieces = []")
            line("put = pieces.append")
            if self._scatter:
                line("buffers = []")
            self._structure(layout(structure, self._version), "message", 0)
            self._flush()
            if self._scatter:
                line("if pieces: buffers.append(b''.join(pieces))")
                line("return buffers")
            else:
                line("return [b''.join(pieces)]")
        return self._source.build("encode", f"<encoder of {structure.__name__} v{self._version}>")

    def _structure(self, of: Layout, owner: str, depth: int) -> None:
        for field in of.fields:
            self._field(field, f"{owner}.{field.name}", depth)
        if self._flexible:
            self._tags(of, owner, depth)

    def _field(self, field: FieldLayout, value: str, depth: int) -> None:
        match field.wire:
            case Fixed() as wire:
                self._run.append((wire.code, value))
            case Array() as wire:
                self._array(field, wire, value, depth)
            case String():
                self._string(value, field.nullable)
            case Bytes():
                self._bytes(value, field.nullable)
            case RecordBytes():
                self._records(value)
            case Nested():
                self._nested(field, value, depth)
            case _:
                raise TypeError(f"{field.name}: {type(field.wire).__name__} has no place of its own on the wire")

    def _flush(self) -> None:
        """Emit one pack for the fields of fixed width that have gathered."""
        if self._run:
            self._source.line(f"{self._put}({self._packed(self._run)})")
            self._run.clear()

    def _packed(self, run: list[tuple[str, str]]) -> str:
        """Return the expression for the bytes of `run`."""
        codes = "".join(code for code, _ in run)
        if codes.strip(_PAD) == "":
            return repr(bytes(len(codes)))
        if codes == "B":
            return f"BYTE[{run[0][1]}]"
        pack = self._source.constant(struct_name("pack", codes), struct_of(codes).pack)
        return f"{pack}({', '.join(value for code, value in run if code != _PAD)})"

    def _prefix(self, code: str, long: str = "uvarint") -> None:
        """Emit a length prefix from `n`, which is one more than the length in flexible versions."""
        if not self._flexible:
            self._run.append((code, "n"))
            self._flush()
            return
        line, run = self._source.line, self._run
        line(f"if n < 128: {self._put}({self._packed([*run, ('B', 'n')])})")
        before = f"{self._packed(run)} + " if run else ""
        line(f"else: {self._put}({before}{long}(n))")
        run.clear()

    def _length(self, of: str) -> str:
        return f"len({of}) + 1" if self._flexible else f"len({of})"

    @property
    def _null(self) -> int:
        return 0 if self._flexible else -1

    def _string(self, value: str, nullable: bool) -> None:
        line = self._source.line
        if nullable:
            line(f"text = {value}")
            with self._source.block("if text is None:"):
                line(f"content, n = b'', {self._null}")
            with self._source.block("else:"):
                line("content = text.encode()")
                line(f"n = {self._length('content')}")
        else:
            line(f"content = {value}.encode()")
            line(f"n = {self._length('content')}")
        self._prefix("h", "string_length")
        line(f"{self._put}(content)")

    def _bytes(self, value: str, nullable: bool) -> None:
        line = self._source.line
        line(f"content = {value}")
        if nullable:
            line(f"if content is None: content, n = b'', {self._null}")
            line(f"else: n = {self._length('content')}")
        else:
            line(f"n = {self._length('content')}")
        self._prefix("i")
        line(f"{self._put}(content)")

    def _records(self, value: str) -> None:
        line = self._source.line
        line(f"records = {value}")
        line(f"if records is None: n, held = {self._null}, ()")
        with self._source.block("else:"):
            line("n, held = record_buffers(records)")
            if self._flexible:
                line("n += 1")
        self._prefix("i")
        with self._source.block("if held:"):
            line("buffers.append(b''.join(pieces))")
            line("buffers += held")
            line("pieces.clear()")

    def _nested(self, field: FieldLayout, value: str, depth: int) -> None:
        assert field.structure is not None
        of = layout(field.structure, self._version)
        if not field.nullable:
            self._structure(of, value, depth + 1)
            return
        self._flush()
        nested = f"nested_{depth}"
        self._source.line(f"{nested} = {value}")
        self._source.line(f"if {nested} is None: {self._put}(b'\\xff')")
        with self._source.block("else:"):
            self._run.append(("b", "1"))
            self._structure(of, nested, depth + 1)
            self._flush()

    def _array(self, field: FieldLayout, wire: Array, value: str, depth: int) -> None:
        line = self._source.line
        items = f"items_{depth}"
        line(f"{items} = {value}")
        if field.nullable:
            line(f"if {items} is None: {items}, n = (), {self._null}")
            line(f"else: n = {self._length(items)}")
        else:
            line(f"n = {self._length(items)}")
        self._prefix("i")
        if wire.of is not None and issubclass(wire.of, Fixed):
            code = wire.of.code
            short = self._source.constant(f"pack_short_{code}", [one.pack for one in short_arrays(code)])
            self._source.constant("pack", struct.pack)
            line(f"n = len({items})")
            line(f"if n <= {SHORT_ARRAY}: {self._put}({short}[n](*{items}))")
            line(f'else: {self._put}(pack(f">{{n}}{code}", *{items}))')
            return
        item = f"item_{depth + 1}"
        with self._source.block(f"for {item} in {items}:"):
            if wire.of is not None:
                self._string(item, nullable=False)
            elif field.structure is not None:
                self._structure(layout(field.structure, self._version), item, depth + 1)
                self._flush()

    def _tags(self, of: Layout, owner: str, depth: int) -> None:
        """Emit the tag section that ends a flexible structure."""
        if not of.tagged:
            self._run.append((_PAD, ""))
            return
        self._flush()
        line, outer = self._source.line, self._put
        tags, pieces = f"tags_{depth}", f"pieces_{depth}"
        line(f"{tags} = []")
        for field in sorted(of.tagged, key=lambda field: field.wire.tag or 0):
            value = f"tagged_{depth}"
            line(f"{value} = {owner}.{field.name}")
            with self._source.block(f"if {value} {self._differs(field)}:"):
                line(f"{pieces} = []")
                self._put = f"{pieces}.append"
                self._tagged(field, value, depth)
                self._flush()
                self._put = outer
                line(f"{tags}.append(tagged_field({field.wire.tag}, {pieces}))")
        line(f"{outer}(uvarint(len({tags})) + b''.join({tags}) if {tags} else b'\\0')")

    def _tagged(self, field: FieldLayout, value: str, depth: int) -> None:
        if isinstance(field.wire, Nested) and field.structure is not None:
            self._structure(layout(field.structure, self._version), value, depth + 1)
        else:
            self._field(field, value, depth + 1)

    @staticmethod
    def _differs(field: FieldLayout) -> str:
        return "is not None" if field.default is None else f"!= {field.default!r}"
