"""The `format` file: another version or schema is refused by one line, a damaged file is told from both."""

import pytest

from exacta.adapters.local import UnsupportedFormat
from exacta.adapters.local.damage.inspection import Finding, Verdict, inspect
from exacta.adapters.local.damage.surveyor import survey
from exacta.adapters.local.files import read_file
from exacta.adapters.local.format import VERSION
from exacta.adapters.local.format_file import Format, pack, unpack
from exacta.ports.journal import JournalDamaged, Schema
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.turns import Turns

OURS = Schema(writes="events 7, snapshot 3", reads=("events 6, snapshot 3",))
SAYS = b"exacta journal 6, events 7, snapshot 3, checksum 6c4a8b27\n"


def opened(disk: SimulatedDisk, schema: Schema | None = OURS) -> SimulatedDisk:
    open_journal(disk, Turns().call_soon, schema=schema).close()
    return disk


@pytest.fixture
def disk() -> SimulatedDisk:
    return opened(SimulatedDisk()).restarted()


def damage(disk: SimulatedDisk, schema: Schema | None = OURS) -> list[Finding]:
    return [each for each in inspect(disk, schema) if isinstance(each, Finding) and each.verdict is Verdict.DAMAGED]


def test_it_is_one_line_that_people_can_read(disk: SimulatedDisk) -> None:
    assert disk.content("format") == SAYS
    assert unpack(SAYS) == Format(6, "events 7, snapshot 3")
    assert damage(disk) == []
    opened(disk)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(
            pack(Format(VERSION, "events 8, snapshot 3")), "exacta journal 6, events 8, snapshot 3", id="newer"
        ),
        pytest.param(
            pack(Format(VERSION, "events 5, snapshot 2")), "exacta journal 6, events 5, snapshot 2", id="older"
        ),
        pytest.param(pack(Format(99, OURS.writes)), "exacta journal 99, events 7, snapshot 3", id="a newer journal"),
        pytest.param(b"exacta journal 5\n", "exacta journal 5", id="of before there were schemas"),
    ],
)
def test_what_this_version_does_not_read_is_refused_by_one_line(disk: SimulatedDisk, content: bytes, says: str) -> None:
    disk.put("format", content)
    before = {name: disk.content(name) for name in disk.files}
    with pytest.raises(UnsupportedFormat) as refused:
        opened(disk)
    line = str(refused.value)
    assert "\n" not in line
    assert line.startswith(f"{disk.directory / 'format'} says '{says}', and this version of Exacta reads ")
    assert (
        "'exacta journal 6, events 7, snapshot 3' or 'exacta journal 6, events 6, snapshot 3'. Use the version" in line
    )
    with pytest.raises(UnsupportedFormat) as not_judged:
        damage(disk)
    assert str(not_judged.value) == line, "nothing is damaged"
    with pytest.raises(UnsupportedFormat) as not_repaired:
        survey(disk, lambda batch, row: True, OURS)
    assert str(not_repaired.value) == line, "a repair must not call it ours"
    assert {name: disk.content(name) for name in disk.files} == before


def test_a_schema_that_is_read_becomes_the_present_one(disk: SimulatedDisk) -> None:
    """An older version would misread what this one writes from now on."""
    disk.put("format", pack(Format(VERSION, OURS.reads[0])))
    assert damage(disk) == []
    assert opened(disk).restarted().content("format") == SAYS


def test_who_decodes_nothing_opens_any_schema_and_leaves_it(disk: SimulatedDisk) -> None:
    assert damage(disk, None) == []
    assert opened(disk, None).content("format") == SAYS
    assert opened(SimulatedDisk(), None).content("format") == pack(Format(VERSION))


def test_a_flipped_bit_is_damage_and_is_put_back(disk: SimulatedDisk) -> None:
    for bit in range(8 * len(SAYS)):
        flipped = bytearray(SAYS)
        flipped[bit // 8] ^= 1 << bit % 8
        disk.put("format", bytes(flipped))
        with pytest.raises(JournalDamaged, match="format, byte 0: it is not what was written"):
            opened(disk)
        assert [finding.name for finding in damage(disk)] == ["format"]
        mended = survey(disk, lambda batch, row: True, OURS)
        assert read_file(mended.files, "format") == SAYS
        assert [(each.offset, each.what) for each in mended.mended] == [(bit // 8, "one flipped bit")]


@pytest.mark.parametrize("content", [None, b"", b"anything else\n", SAYS[:-1], SAYS * 2])
def test_it_is_made_again_where_a_segment_is_of_this_version(disk: SimulatedDisk, content: bytes | None) -> None:
    if content is None:
        disk.remove("format")
    else:
        disk.put("format", content)
    with pytest.raises(JournalDamaged, match="format, byte 0: "):
        opened(disk)
    mended = survey(disk, lambda batch, row: True, OURS)
    assert read_file(mended.files, "format") == SAYS
    disk.put(next(name for name in disk.files if name.endswith(".log")), b"")
    with pytest.raises(UnsupportedFormat, match="is missing or damaged, and no segment is of the version"):
        survey(disk, lambda batch, row: True, OURS)
