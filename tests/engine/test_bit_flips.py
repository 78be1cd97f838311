"""Bits that flip under a running broker, in every place of its segments and indexes: nothing altered is ever served.

Two partitions have batches of the same sizes at the same offsets, so that wherever an index is led astray there is a
batch that could be taken for the right one.
"""

from collections.abc import Sequence

import pytest

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.index.segment_index import pack_segment_index
from exacta.adapters.memory import MemoryJournal
from exacta.core.rejections import Rejection
from exacta.engine import reading
from exacta.engine.reading import BatchReader, Read
from exacta.ports.journal import Buffer, Extent, JournalDamaged
from exacta.ports.log import FetchPartition, FetchRequest, FetchResult
from exacta.protocol.kafka.records import parse_batch_header
from exacta.records.record_format import KafkaRecordFormat
from simulation.clients.batches import batch
from simulation.disk.simulated import SimulatedDisk
from tests.engine.disk_rig import DiskRig
from tests.engine.rig import ManualLoop, PlainRecords
from tests.shares import share_of, shared

SEGMENT_BYTES = 1_200
BATCHES = 14
PARTITIONS = (0, 1)


class KafkaRig(DiskRig):
    """Batches as Kafka's clients write them."""

    format = KafkaRecordFormat()


@pytest.fixture(scope="module")
def filled() -> KafkaRig:
    """An engine over some sealed segments, whose indexes are mapped, and one that is written to."""
    rig = KafkaRig(SimulatedDisk(), SEGMENT_BYTES)
    rig.topic(partition_count=len(PARTITIONS))
    for number in range(BATCHES):
        for partition in PARTITIONS:
            values = [b"%02d of %d" % (number, partition)]
            rig.append(batch(values, (-1, -1), -1, transactional=False, now_ms=number), partition, timestamp_ms=number)
            rig.settle()
    settle_indexes(rig)
    assert len(names(rig, ".index")) >= 3
    return rig


def settle_indexes(rig: KafkaRig) -> None:
    """Wait until every sealed segment is looked up in its index."""
    assert isinstance(rig.journal, LocalJournal)
    while any(segment.index is None for segment in rig.journal._segments[:-1]):
        rig.loop.wait()
        rig.loop.turn()


def names(rig: KafkaRig, suffix: str) -> list[str]:
    return sorted(name for name in rig.disk.files if name.endswith(suffix))


def fetched(rig: KafkaRig, *offsets: int) -> list[FetchResult]:
    """Fetch from both partitions in one request."""
    wanted = [
        FetchPartition("t", partition, offset, 300) for partition, offset in zip(PARTITIONS, offsets, strict=True)
    ]
    results: list[FetchResult] = []
    rig.engine.fetch(FetchRequest(wanted, 0, 1, 1 << 20, False), results.extend)
    while not results:
        rig.loop.wait()
        rig.loop.turn()
    return results


def consumed(rig: KafkaRig) -> list[tuple[bytes, Rejection | None]]:
    """Read both partitions as a consumer does, each up to its end or the first error."""
    offsets, ends = [0, 0], [False, False]
    found: list[list[bytes]] = [[], []]
    errors: list[Rejection | None] = [None, None]
    while not all(ends):
        for partition, result in enumerate(fetched(rig, *offsets)):
            if ends[partition]:
                continue
            errors[partition] = result.rejection
            assert not (result.rejection and result.records)
            for buffer in result.records:
                found[partition].append(bytes(buffer))
                offsets[partition] += count(bytes(buffer))
            ends[partition] = result.rejection is not None or offsets[partition] == BATCHES
    return [(b"".join(buffers), error) for buffers, error in zip(found, errors, strict=True)]


def count(batches: bytes) -> int:
    number = at = 0
    while at < len(batches):
        at += parse_batch_header(batches, at).size
        number += 1
    return number


def flips(rig: KafkaRig, name: str) -> list[tuple[int, int]]:
    """Return the share of a bit of every byte, another one each time, and every bit of some."""
    size = len(rig.disk.content(name))
    some = range(size // 2, min(size // 2 + 16, size))
    return share_of([*((byte, byte % 8) for byte in range(size)), *((byte, bit) for byte in some for bit in range(8))])


def test_of_a_segment_all_but_what_is_altered_is_served(filled: KafkaRig):
    whole = consumed(filled)
    assert [error for _, error in whole] == [None, None]
    for place, name in enumerate(names(filled, ".log")):
        refused = 0
        for byte, bit in flips(filled, name):
            filled.disk.rot(name, byte, bit)
            found = consumed(filled)
            filled.disk.rot(name, byte, bit)
            if found == whole:
                continue  # not one of the bytes that a reader gets
            refused += 1
            bad = [partition for partition in PARTITIONS if found[partition] != whole[partition]]
            assert len(bad) == 1, (name, byte)
            served, error = found[bad[0]]
            assert error is Rejection.STORAGE_ERROR, (name, byte)
            assert whole[bad[0]][0].startswith(served), (name, byte)
        # The first one holds the topic and its configurations, too, which no reader gets.
        assert refused > shared(len(filled.disk.content(name))) // (4 if place else 5), name


def test_by_an_altered_index_nothing_is_served_and_the_next_start_makes_it_anew(filled: KafkaRig):
    whole = consumed(filled)
    asked = lookups(filled)
    name = names(filled, ".index")[1]
    noticed = 0
    for byte, bit in flips(filled, name):
        rig = KafkaRig(filled.disk.restarted(), SEGMENT_BYTES)
        rig.disk.rot(name, byte, bit)
        try:
            assert lookups(rig) == asked, byte
            assert consumed(rig) == whole, byte
            assert not rig.failures
        except JournalDamaged:
            noticed += 1
            (failure,) = rig.failures
            assert str(failure).startswith(f"in simulated, {name} is damaged: start again")
        rig.journal.close()
        if byte % 16 == 0:
            again = KafkaRig(rig.disk.restarted(), SEGMENT_BYTES)
            assert consumed(again) == whole, byte
            again.journal.close()
    # But for the header, which nobody looks at again, and the checksum of the last block's numbers.
    header_bytes = len(pack_segment_index({}, b"12345678", 0, 0)[0])
    assert noticed > 0.8 * shared(len(filled.disk.content(name)) - header_bytes)


def test_the_operator_is_told_once(filled: KafkaRig, caplog: pytest.LogCaptureFixture):
    name = names(filled, ".log")[1]
    byte = filled.disk.content(name).index(b"03 of 1")
    filled.disk.rot(name, byte, 3)
    filled.engine._fetcher._reader = BatchReader(filled.journal, filled.format, filled.loop)
    for _ in range(2):
        good, bad = fetched(filled, 3, 3)
        assert (good.rejection, bad.rejection) == (None, Rejection.STORAGE_ERROR)
    filled.disk.rot(name, byte, 3)
    assert caplog.messages == [
        "t-1 cannot be read from offset 3 on: record batch fails its checksum. If that stays so: stop the broker; "
        "`exacta log verify` says what is damaged, and `exacta log repair` what can be put right"
    ]
    assert not fetched(filled, 3, 3)[1].rejection


def test_a_search_by_time_is_not_served_an_altered_batch(filled: KafkaRig):
    name = names(filled, ".log")[1]
    byte = filled.disk.content(name).index(b"03 of 1")
    found = filled.engine.lookups.batch_for_time("t", 1, 3, 0, BATCHES)
    assert found is not None
    read: list[object] = []
    filled.engine.lookups.read_batch("t", 1, found, read.append)
    filled.disk.rot(name, byte, 3)
    filled.engine.lookups.read_batch("t", 1, found, read.append)
    filled.disk.rot(name, byte, 3)
    while len(read) < 2:
        filled.loop.wait()
        filled.loop.turn()
    assert [each is not None for each in read] == [True, False]


def test_others_get_their_turn_while_many_batches_are_checked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "BATCHES_A_TURN", 3)
    loop = ManualLoop()
    journal = Extents([b"abcde", b"", b"fgh!", b"ijklm", b"!n"])
    reads: list[Read] = []
    BatchReader(journal, OneByteBatches(), loop).read(journal.extents, reads.extend)
    turns = 0
    while not reads:
        turns += 1
        loop.turn()
    found = [(bytes(read.batches), read.fault) for read in reads]
    assert found == [(b"abcde", ""), (b"", ""), (b"fgh", "altered"), (b"ijklm", ""), (b"", "altered")]
    assert turns == 4


class OneByteBatches(PlainRecords):
    """Each is a letter; "!" is an altered one."""

    def sound(self, batches: Buffer, first_offsets: Sequence[int]) -> tuple[int, str]:
        size = (bytes(batches[: len(first_offsets)]) + b"!").index(b"!")
        return size, "" if size == len(first_offsets) else "altered"


class Extents(MemoryJournal):
    """These, and nothing else."""

    def __init__(self, contents: Sequence[bytes]) -> None:
        self.extents = [Extent(range(len(content)), range(len(content)), len(content), content) for content in contents]

    def read_cached(self, extents: Sequence[Extent]) -> list[Buffer]:
        return [extent.place for extent in extents if isinstance(extent.place, bytes)]


def lookups(rig: KafkaRig) -> list[object]:
    journal = rig.journal
    return [
        (
            journal.find_by_time(stream, 0, offset, BATCHES),
            journal.find_latest(stream, offset, BATCHES),
            journal.count_records(stream, offset, BATCHES),
            journal.size_bytes(stream, offset, BATCHES),
            journal.offset_after(stream, offset, BATCHES, 200),
        )
        for stream in rig.engine._state.partitions
        for offset in range(BATCHES)
    ]
