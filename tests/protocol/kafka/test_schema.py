"""How annotations are read."""

from typing import Annotated, ClassVar

import pytest

from exacta.protocol.kafka.codec import decode, encode
from exacta.protocol.kafka.schema import (
    EMPTY,
    Array,
    Int8,
    Int64,
    Message,
    Nested,
    Schema,
    String,
    Structure,
    VersionRange,
    layout,
    version_range,
)


class Part(Structure, kw_only=True):
    number: Annotated[int, Int8("0+")] = 0


class Example(Message, kw_only=True):
    SCHEMA: ClassVar[Schema] = Schema(key=1000, versions="1-3", flexible="2+")

    old: Annotated[int, Int8("0-1")] = -1
    parts: Annotated[list[Part] | None, Array("0+", nullable="3+")] = EMPTY
    numbers: Annotated[list[int], Array("2", of=Int64)] = EMPTY
    text: Annotated[str, String("2+", tag=1)] = "default"
    part: Annotated[Part | None, Nested("3+", tag=0)] = None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3+", VersionRange(3, 0x7FFF)),
        ("0-7", VersionRange(0, 7)),
        ("4", VersionRange(4, 4)),
        (None, VersionRange(0, -1)),
    ],
)
def test_version_ranges(text: str | None, expected: VersionRange) -> None:
    assert version_range(text) == expected


def test_a_version_range_is_inclusive_on_both_ends() -> None:
    assert list(version_range("4-6")) == [4, 5, 6]
    assert [version in version_range("4-6") for version in (3, 4, 6, 7)] == [False, True, True, False]


def test_a_layout_has_the_fields_of_one_version() -> None:
    names = [[field.name for field in layout(Example, version).fields] for version in (1, 2, 3)]
    assert names == [["old", "parts"], ["parts", "numbers"], ["parts"]]
    assert [field.name for field in layout(Example, 3).tagged] == ["text", "part"]
    parts = layout(Example, 3).fields[0]
    assert (parts.structure, parts.nullable, layout(Example, 2).fields[0].nullable) == (Part, True, False)


def test_bytes_of_each_version() -> None:
    message = Example(old=5, parts=[Part(number=6)], numbers=[7], text="x", part=Part(number=8))
    assert encode(message, 1) == [bytes.fromhex("05 00000001 06")]
    assert encode(message, 2) == [bytes.fromhex("02 06 00 02 0000000000000007 01 01 02 02 78")]
    # Tags ascend on the wire whatever their order in the class (KIP-482).
    assert encode(message, 3) == [bytes.fromhex("02 06 00 02 00 02 08 00 01 02 02 78")]
    assert decode(Example, 3, encode(message, 3)[0]) == Example(parts=[Part(number=6)], text="x", part=Part(number=8))
    assert decode(Example, 2, bytes.fromhex("01 01 00")) == Example()
    assert decode(Example, 3, bytes.fromhex("00 00")) == Example(parts=None)


def test_messages_take_keywords_only() -> None:
    with pytest.raises(TypeError):
        Example(5)  # type: ignore[call-arg]
