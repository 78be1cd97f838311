"""Schema of messages: what the annotations in `exacta.protocol.kafka.messages` say, and how they are read.

Owns the vocabulary in which message modules state wire facts, and their resolution for one version. Knows nothing of
bytes: `exacta.protocol.kafka.decoder` and `encoder` turn what `layout` returns into code.

Theory of operation. A message class is a mutable `msgspec.Struct` whose annotations are the schema data:

    producer_id: Annotated[int, Int64("3+")] = -1

says that `producer_id` is an INT64 on the wire in versions 3 and above, and -1 where a version does not have it.
A version range is "3+", "0-7" or "4". `nullable` is the range in which null is allowed; `tag` makes it a tagged field
(KIP-482) in its whole range. The order of annotations is the order on the wire. A class that is the whole body of a
request or response is a `Message` and carries a `SCHEMA`; one that is an element of it is a `Structure`.

Tagged structures default to None, which means absent; every other tagged field that equals its default is not sent.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

Buffer: TypeAlias = bytes | bytearray | memoryview
"""The types that hold contiguous bytes."""

Records: TypeAlias = memoryview | bytes | Sequence[Buffer] | None
"""Record batches: a view into the frame when decoded; one buffer, or a scatter list, or null when encoded."""

NO_UUID = bytes(16)
"""Kafka's zero UUID: no topic id, no directory id."""

EMPTY: Any = msgspec.field(default_factory=list)
"""The default of arrays: a list of its own for every message."""

OPEN_END = 0x7FFF


class VersionRange(msgspec.Struct, frozen=True):
    """Versions `first` to `last`, both inclusive; empty where `last` < `first`."""

    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))


NO_VERSION = VersionRange(0, -1)


def version_range(text: str | None) -> VersionRange:
    """Parse "3+", "0-7" or "4"; None is the empty range."""
    if text is None:
        return NO_VERSION
    if text.endswith("+"):
        return VersionRange(int(text[:-1]), OPEN_END)
    first, _, last = text.partition("-")
    return VersionRange(int(first), int(last or first))


class Wire:
    """The form of one field: the versions that have it, those in which it may be null, and its tag if it has one."""

    __slots__ = ("nullable", "tag", "versions")

    def __init__(self, versions: str, *, nullable: str | None = None, tag: int | None = None) -> None:
        self.versions = version_range(versions)
        self.nullable = version_range(nullable)
        self.tag = tag


class Fixed(Wire):
    """A field of fixed width; `code` is its letter in the `struct` module."""

    __slots__ = ()
    code: ClassVar[str]


class Bool(Fixed):
    """BOOLEAN: one byte, any but zero is true."""

    code = "?"


class Int8(Fixed):
    """INT8."""

    code = "b"


class Int16(Fixed):
    """INT16, big-endian."""

    code = "h"


class Int32(Fixed):
    """INT32, big-endian."""

    code = "i"


class Int64(Fixed):
    """INT64, big-endian."""

    code = "q"


class Float64(Fixed):
    """FLOAT64, IEEE 754, big-endian."""

    code = "d"


class Uuid(Fixed):
    """UUID: sixteen bytes, kept as such."""

    code = "16s"


class String(Wire):
    """STRING, NULLABLE_STRING and their compact forms: UTF-8, at most 32,767 bytes."""


class Bytes(Wire):
    """BYTES and its kin, copied out of the frame."""


class RecordBytes(Wire):
    """RECORDS: record batches, never copied."""


class Array(Wire):
    """ARRAY of the structures that the annotation names, or of the scalars `of`."""

    __slots__ = ("of",)

    def __init__(
        self, versions: str, *, nullable: str | None = None, tag: int | None = None, of: type[Wire] | None = None
    ) -> None:
        super().__init__(versions, nullable=nullable, tag=tag)
        self.of = of


class Nested(Wire):
    """A structure in a structure. A tagged one is None where it is absent; one with a place of its own may be null."""


class Structure(msgspec.Struct, kw_only=True, gc=False):
    """An element of a message.

    Not tracked by the garbage collector: messages hold plain data and never refer to themselves.
    """


class Schema:
    """Facts of a whole message: its API key, the versions that the codec knows, those that are flexible (KIP-482)."""

    __slots__ = ("flexible", "key", "versions")

    def __init__(self, *, key: int, versions: str, flexible: str | None = None) -> None:
        self.key = key
        self.versions = version_range(versions)
        self.flexible = version_range(flexible)


class Message(Structure, kw_only=True, gc=False):
    """The whole body of a request or a response."""

    SCHEMA: ClassVar[Schema]


class FieldLayout(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a structure in one version."""

    name: str
    wire: Wire
    nullable: bool
    default: Any
    structure: type[Structure] | None
    """The class of the elements of an array, or of a nested structure."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a structure that one version has: those on their places in wire order, and those with a tag."""

    structure: type[Structure]
    fields: tuple[FieldLayout, ...]
    tagged: tuple[FieldLayout, ...]


@cache
def _annotations(structure: type[Structure]) -> dict[str, Any]:
    hints = get_type_hints(structure, include_extras=True)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is Annotated}


def layout(structure: type[Structure], version: int) -> Layout:
    """Return which fields `structure` has on the wire in `version`."""
    fields: list[FieldLayout] = []
    tagged: list[FieldLayout] = []
    defaults = structure()
    for name, hint in _annotations(structure).items():
        annotated, wire = get_args(hint)
        if version not in wire.versions:
            continue
        field = FieldLayout(
            name=name,
            wire=wire,
            nullable=version in wire.nullable,
            default=getattr(defaults, name),
            structure=_structure_in(annotated),
        )
        (fields if wire.tag is None else tagged).append(field)
    return Layout(structure=structure, fields=tuple(fields), tagged=tuple(tagged))


def has_records(structure: type[Structure], version: int) -> bool:
    """Say whether `structure` carries record bytes anywhere in `version`."""
    of = layout(structure, version)
    return any(
        isinstance(field.wire, RecordBytes) or (field.structure is not None and has_records(field.structure, version))
        for field in of.fields + of.tagged
    )


def _structure_in(annotated: Any) -> type[Structure] | None:
    """Find the structure class in `X`, `X | None`, `list[X]` or `list[X] | None`."""
    if isinstance(annotated, type) and get_origin(annotated) is None:
        return annotated if issubclass(annotated, Structure) else None
    found = (_structure_in(argument) for argument in get_args(annotated))
    return next((structure for structure in found if structure is not None), None)
