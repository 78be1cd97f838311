"""A bit flips in a mapped segment index, in a number that a look-up reads: the look-up answers as before, or fails."""

import random
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from exacta.adapters.local.index.segment_index import pack_segment_index, unpack_segment_index
from exacta.adapters.local.index.segment_rows import NUMBER_BYTES, DamagedIndex, Segment
from exacta.adapters.local.index.stream_index import Index
from exacta.ports.journal import IndexEntry

MARK = b"12345678"
HEADER_BYTES = len(pack_segment_index({}, MARK, 1, 2)[0])
BIG = 300
"""The stream whose rows fill many blocks."""
STREAMS = range(0, 600, 3)
SEGMENTS = 3
ROWS_OF_BIG = 800
EVERYTHING = 1 << 60

Look = tuple[str, tuple[Any, ...]]


class Noted:
    """A column that notes which of its numbers are read."""

    def __init__(self, column: Any, at: int, read: set[int]) -> None:
        self._column, self._at, self._read = column, at, read

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            self._read.add(self._at + key)
        else:
            self._read.update(range(self._at, self._at + len(self._column))[key])
        return self._column[key]


class Flipped:
    """An index over sealed segments, the numbers that a look-up reads of each, and bits of them that can be altered."""

    def __init__(self, chance: random.Random) -> None:
        self.damaged: list[DamagedIndex] = []
        self.index = Index()
        self.index.on_damage = self.damaged.append
        self.contents: list[bytearray] = []
        self.read: list[set[int]] = []
        self.segments: list[Segment] = []
        self.next_offsets = dict.fromkeys(STREAMS, 0)
        for base in range(SEGMENTS):
            self._add(Segment(base), chance)

    def _add(self, segment: Segment, chance: random.Random) -> None:
        grown = Segment(segment.base)
        start = 0
        for stream in STREAMS:
            for _ in range(ROWS_OF_BIG if stream == BIG else chance.choice((1, 1, 2))):
                first, count, size = self.next_offsets[stream], chance.choice((1, 1, 3)), chance.choice((10, 20))
                row = IndexEntry(stream, first, first + count - 1, first + chance.randrange(50), start, size, count)
                grown.add(0, row)
                start += size
                self.next_offsets[stream] += count
        content = bytearray(b"".join(pack_segment_index(grown.growing, MARK, 1, 2)))
        segment_index = unpack_segment_index(segment.index_name, memoryview(content).toreadonly(), MARK)
        assert segment_index is not None
        read: set[int] = set()

        def noted(column: Any, at: int) -> Any:
            return Noted(column, at, read)

        streams, rows = len(segment_index.streams), len(segment_index.columns[0])
        segment.seal(
            segment_index._replace(
                streams=noted(segment_index.streams, 0),
                row_ends=noted(segment_index.row_ends, streams),
                columns=[noted(each, 2 * streams + at * rows) for at, each in enumerate(segment_index.columns)],
            )
        )
        self.contents.append(content)
        self.read.append(read)
        self.segments.append(segment)
        self.index.add_segment(segment)

    def ask(self, look: Look) -> object:
        for each in self.read:
            each.clear()
        name, arguments = look
        found = getattr(self.index, name)(*arguments)
        if name != "find":
            return found
        return [
            (
                [*extent.first_offsets],
                extent.last_offset,
                extent.size,
                extent.place.low,
                [*extent.place.rows.positions[extent.place.low : extent.place.high]],
            )
            for extent in found
        ]

    def flip(self, segment: int, number: int, bit: int) -> None:
        self.contents[segment][HEADER_BYTES + number * NUMBER_BYTES + bit // 8] ^= 1 << bit % 8


LOOKS: dict[str, Callable[[random.Random, int], tuple[Any, ...]]] = {
    "find": lambda chance, end: (chance.choice((0, 100, 3_000, EVERYTHING)),),
    "find_by_time": lambda chance, end: (),
    "find_latest": lambda chance, end: (),
    "count_records": lambda chance, end: (),
    "size_bytes": lambda chance, end: (),
    "offset_after": lambda chance, end: (chance.choice((0, 100, 3_000, EVERYTHING)),),
}


def looked_up(flipped: Flipped, chance: random.Random) -> Look:
    stream = BIG if chance.random() < 0.75 else chance.choice((*STREAMS, 7))
    end = flipped.next_offsets.get(stream, 5)
    name = chance.choice((*LOOKS, "last_offset", "size_in"))
    offset = chance.randrange(end)
    if name == "last_offset":
        return name, (stream,)
    if name == "size_in":
        return name, (chance.choice(flipped.segments), stream, offset)
    end_offset = chance.randrange(offset, end + 2) if chance.random() < 0.7 else end
    time = (chance.randrange(end + 60),) if name == "find_by_time" else ()
    return name, (stream, *time, offset, end_offset, *LOOKS[name](chance, end))


@pytest.mark.parametrize("seed", range(3))
def test_no_look_up_is_led_astray(seed: int):
    chance = random.Random(seed)
    flipped = Flipped(chance)
    noticed: Counter[str] = Counter()
    for _ in range(1_500):
        look = looked_up(flipped, chance)
        wanted = flipped.ask(look)
        read = [(segment, number) for segment, numbers in enumerate(flipped.read) for number in sorted(numbers)]
        for segment, number in chance.choices(read, k=4) if read else ():
            bit = chance.choice((*range(14), 62, 63))
            flipped.flip(segment, number, bit)
            try:
                found = flipped.ask(look)
            except DamagedIndex as damage:
                found = damage
            flipped.flip(segment, number, bit)
            if isinstance(found, DamagedIndex):
                assert flipped.damaged == [found]
                assert found.name == flipped.segments[segment].index_name
                flipped.damaged.clear()
                noticed[look[0]] += 1
            else:
                assert found == wanted, (look, segment, number, bit)
    assert set(noticed) == {*LOOKS, "last_offset", "size_in"}


def test_every_number_of_a_segment_index_is_checked():
    """Also those of the last block, which is shorter."""
    rows = Segment(0)
    for offset in range(150):
        rows.add(0, IndexEntry(1, offset, offset, 0, offset, 1, 1))
    content = bytearray(b"".join(pack_segment_index(rows.growing, MARK, 1, 2)))
    segment_index = unpack_segment_index("name", memoryview(content).toreadonly(), MARK)
    assert segment_index is not None
    numbers = array("q", content[HEADER_BYTES : HEADER_BYTES + (2 + 7 * 150) * NUMBER_BYTES])
    for number in range(len(numbers)):
        content[HEADER_BYTES + number * NUMBER_BYTES] ^= 1
        with pytest.raises(DamagedIndex, match="name is damaged: start again"):
            segment_index._check(number, number + 1)
        content[HEADER_BYTES + number * NUMBER_BYTES] ^= 1
        segment_index._check(number, number + 1)
