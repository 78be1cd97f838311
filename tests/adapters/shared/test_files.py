"""The objects of a catalog as files, their blocks in memory, and the segments that they are."""

import threading
from collections.abc import Sequence

import pytest

from exacta.adapters.local.format import INDEX_SUFFIX
from exacta.adapters.local.worker import Worker
from exacta.adapters.shared.blocks import BLOCK_BYTES, Blocks, Gone
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.files import ObjectFiles
from exacta.adapters.shared.reading import ObjectReader
from exacta.ports.journal import Failed, JournalDamaged
from exacta.ports.shared import CatalogEntry, ObjectStore
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.bench import EVERYTHING
from tests.adapters.shared.uploads import DictStore, seen, upload, written
from tests.adapters.turns import Turns, batch

SIZE = 300
COUNT = 40


def data_of(number: int) -> bytes:
    return b"%02d" % number * (SIZE // 2)


class Opened:
    """A broker's view of the objects in a store."""

    def __init__(self, store: ObjectStore, scratch: SimulatedDisk | None = None) -> None:
        self.turns = Turns()
        self.store = store
        self.scratch = SimulatedDisk() if scratch is None else scratch
        self.files = ObjectFiles(self.scratch, store, Blocks(store))
        self.catalog = Catalog(self.files)
        self.newest: list[CatalogEntry] = []
        self.reader = ObjectReader(self.files, self.catalog, self._reload, self.turns.call_soon)

    def _reload(self, then: object) -> None:
        self.take(self.catalog.version + 1, self.newest)
        self.turns.call_soon(then)  # type: ignore[arg-type]

    def take(self, version: int, entries: Sequence[CatalogEntry]) -> None:
        self.catalog.take(self.catalog.prepare(seen(version, entries)))

    def content(self, stream: int, offset: int = 0) -> list[bytes | Failed]:
        extents = self.catalog.index.find(stream, offset, EVERYTHING, EVERYTHING)
        results = self.turns.wait(lambda done: self.reader.read(extents, done))
        return [each if isinstance(each, Failed) else bytes(each) for each in results]


@pytest.fixture
def store() -> DictStore:
    return DictStore()


@pytest.fixture
def entries(store: DictStore) -> list[CatalogEntry]:
    turns = Turns()
    disk, _ = written(turns, [batch(1 + number % 2, number // 2, data_of(number)) for number in range(COUNT)])
    return upload(disk, store)


def wanted(stream: int, count: int) -> bytes:
    return b"".join(data_of(number) for number in range(stream - 1, count, 2))


def test_batches_are_found_and_read_in_objects(store: DictStore, entries: list[CatalogEntry]):
    opened = Opened(store)
    opened.take(1, entries)
    for stream in (1, 2):
        read = b"".join(each for each in opened.content(stream) if isinstance(each, bytes))
        assert wanted(stream, COUNT).startswith(read)
        assert len(read) > SIZE * COUNT // 3
    blob, replayed = opened.catalog.replay()[1:]
    assert blob is None
    assert next(replayed) == b"event of 1 at 0"
    assert len(list(replayed)) > COUNT * 2 // 3


def test_an_object_is_fetched_once_and_then_in_memory(store: DictStore, entries: list[CatalogEntry]):
    opened = Opened(store)
    opened.take(1, entries)
    store.gets.clear()
    whole = opened.content(1)
    assert len(store.gets) == len(entries)
    store.is_away = True
    assert opened.content(1) == whole
    extents = opened.catalog.index.find(1, 0, EVERYTHING, EVERYTHING)
    assert opened.reader.read_cached(extents) == whole


def test_indexes_are_kept_in_the_cache_directory(store: DictStore, entries: list[CatalogEntry]):
    first = Opened(store)
    first.take(1, entries)
    store.gets.clear()
    again = Opened(store, first.scratch)
    again.take(1, entries)
    assert store.gets == []
    name = next(name for name in first.scratch.names() if name.endswith(".cached"))
    first.scratch.put(name, first.scratch.content(name)[:-1] + b"?")
    Opened(store, first.scratch).take(1, entries)
    assert len(store.gets) == 1, "what the disk has altered is fetched once more"


@pytest.mark.parametrize("what", ["lost", "altered"])
def test_an_index_that_the_store_has_not_kept_is_made_again(
    store: DictStore, entries: list[CatalogEntry], what: str, caplog: pytest.LogCaptureFixture
):
    key = entries[1].key + INDEX_SUFFIX
    whole = store.objects.pop(key)
    if what == "altered":
        store.objects[key] = whole[:50] + b"?" + whole[51:]
    opened = Opened(store)
    opened.take(1, entries)
    assert "it is made again" in caplog.text
    read = b"".join(each for each in opened.content(1) if isinstance(each, bytes))
    assert wanted(1, COUNT).startswith(read)
    assert opened.files.map_index(entries[1]) == whole


def test_an_object_that_is_altered_is_damage_where_its_index_is_lost(store: DictStore, entries: list[CatalogEntry]):
    entry = entries[1]
    del store.objects[entry.key + INDEX_SUFFIX]
    store.objects[entry.key] = store.objects[entry.key][:-9] + b"?" + store.objects[entry.key][-8:]
    with pytest.raises(JournalDamaged, match="checksum is wrong"):
        Opened(store).take(1, entries)


def test_events_of_an_object_that_is_altered_are_damage(store: DictStore, entries: list[CatalogEntry]):
    entry = entries[1]
    opened = Opened(store)
    opened.take(1, entries)
    store.objects[entry.key] = store.objects[entry.key][:-9] + b"?" + store.objects[entry.key][-8:]
    with pytest.raises(JournalDamaged, match=f"object {entry.key}, byte .*checksum is wrong.*restore it from a copy"):
        list(opened.catalog.replay().events)


def test_an_object_that_is_cut_short_is_an_error_for_its_batches_alone(store: DictStore, entries: list[CatalogEntry]):
    store.objects[entries[1].key] = store.objects[entries[1].key][:-1]
    opened = Opened(store)
    opened.take(1, entries)
    assert [isinstance(each, Failed) for each in opened.content(1)] == [at == 1 for at in range(len(entries))]


def test_an_object_that_is_lost_is_looked_up_once_more_and_then_told(store: DictStore, entries: list[CatalogEntry]):
    opened = Opened(store)
    opened.take(1, entries)
    opened.newest = entries
    del store.objects[entries[1].key]
    results = opened.content(1)
    assert [isinstance(each, Failed) for each in results] == [at == 1 for at in range(len(entries))]
    assert opened.catalog.version == 2


def test_an_object_that_was_replaced_and_swept_is_read_where_its_batches_are_now(
    store: DictStore, entries: list[CatalogEntry]
):
    opened = Opened(store)
    opened.take(1, entries)
    whole = opened.content(1)
    old = entries[1]
    moved = old._replace(key="segments/moved")
    for suffix in ("", INDEX_SUFFIX):
        store.objects[moved.key + suffix] = store.objects.pop(old.key + suffix)
    opened = Opened(store, SimulatedDisk())
    store.objects.update({old.key + INDEX_SUFFIX: store.objects[moved.key + INDEX_SUFFIX]})
    opened.take(1, entries)
    opened.newest = [entries[0], moved, *entries[2:]]
    assert opened.content(1) == whole


def test_a_catalog_with_a_gap_is_damage(store: DictStore, entries: list[CatalogEntry]):
    with pytest.raises(JournalDamaged, match="no object from position"):
        Opened(store).take(1, [entries[0], *entries[2:]])


def test_a_beginning_is_dropped(store: DictStore, entries: list[CatalogEntry]):
    opened = Opened(store)
    opened.take(1, entries)
    index = opened.catalog.index
    whole = opened.content(1)
    opened.take(2, entries[2:])
    assert opened.catalog.index is index, "a small change needs no new index"
    assert opened.content(1) == whole[2:]
    fresh = Opened(store)
    fresh.take(2, entries[2:])
    assert fresh.content(1) == whole[2:]


def test_more_segments_come(store: DictStore, entries: list[CatalogEntry]):
    opened = Opened(store)
    opened.take(1, [])
    assert opened.content(1) == []
    opened.take(2, entries[:2])
    index = opened.catalog.index
    opened.take(3, entries)
    assert opened.catalog.index is index
    fresh = Opened(store)
    fresh.take(3, entries)
    assert opened.content(1) == fresh.content(1)


def test_what_earlier_processes_left_is_cleared_away(store: DictStore, entries: list[CatalogEntry]):
    opened = Opened(store)
    opened.take(1, entries)
    opened.scratch.put("00000000000000000000.log.00000000.tmp", b"leavings")
    opened.scratch.put("somebody's", b"not ours")
    opened.take(2, entries[2:])
    opened.files.clear_leavings()
    names = opened.scratch.names()
    assert len(names) == len(entries[2:]) + 1
    assert "somebody's" in names


# --- blocks -----------------------------------------------------------------------------------------------------------


class SlowStore(DictStore):
    """A store whose answers wait until the test lets them go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Semaphore(0)
        self.asked = threading.Semaphore(0)

    def get(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        self.asked.release()
        assert self.go.acquire(timeout=30)
        return super().get(key, start, size)


def test_a_block_is_fetched_once_for_all_that_want_it():
    store = SlowStore()
    store.put("a", [bytes(100)])
    blocks = Blocks(store)
    read: list[bytes] = []
    threads = [threading.Thread(target=lambda: read.append(blocks.read("a", 100, 10, 5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert store.asked.acquire(timeout=30)
    store.go.release()
    for thread in threads:
        thread.join(timeout=30)
    assert read == [bytes(10)] * 4
    assert len(store.gets) == 1


def test_blocks_that_were_read_last_stay():
    store = DictStore()
    for key in "abc":
        store.put(key, [key.encode() * 100])
    blocks = Blocks(store, kept_bytes=250)
    for key in "abac":
        assert blocks.read(key, 100, 4, 90) == key.encode() * 4
    assert [key for key, _, _ in store.gets] == ["a", "b", "c"]
    assert blocks.read_cached("b", 100, 4, 0) is None
    assert blocks.read_cached("a", 100, 4, 98) == b"aa"


def test_a_reader_that_goes_on_finds_the_next_block_fetched():
    store = DictStore()
    size = 3 * BLOCK_BYTES + 10
    store.put("a", [bytes(size)])
    ahead = Worker("ahead")
    blocks = Blocks(store, ahead=ahead)
    assert blocks.read("a", size, 10, BLOCK_BYTES - 5) == bytes(10)
    assert len(store.gets) == 2
    assert blocks.read("a", size, 10, 2 * BLOCK_BYTES) == bytes(10)
    ahead.close()
    assert [start // BLOCK_BYTES for _, start, _ in store.gets] == [0, 1, 2, 3]
    assert blocks.read("a", size, 100, size - 10) == bytes(10)
    assert len(store.gets) == 4


def test_what_is_missing_is_told_from_a_store_that_is_away():
    store = DictStore()
    with pytest.raises(Gone):
        Blocks(store).read("a", 10, 10, 0)
    store.is_away = True
    with pytest.raises(OSError, match="503") as raised:
        Blocks(store).read("a", 10, 10, 0)
    assert not isinstance(raised.value, Gone)
