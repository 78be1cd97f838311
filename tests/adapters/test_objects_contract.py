"""The contract of the object store's port, run on every store that is there (`object_benches.py`)."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from exacta.ports.shared import Missing, StoreFailed
from tests.adapters.object_benches import ObjectBench

MEBIBYTE = 1 << 20
KEY = "prefix/cluster/segments/00000000000000000000-0-0123456789abcdef.log"


def test_object_is_whole_for_every_broker_once_it_was_put(stores: ObjectBench):
    stores.open().put(KEY, [b"one", memoryview(b"two")[1:], bytearray(b"three"), b""])
    assert stores.open().get(KEY) == b"onewothree"


def test_parts_are_read_and_fewer_bytes_at_the_end(stores: ObjectBench):
    store = stores.open()
    data = bytes(range(100))
    store.put(KEY, [data])
    for start, size in ((0, 100), (0, 1), (17, 30), (99, 1), (90, 10), (90, 100), (0, 1 << 30), (100, 5), (200, 5)):
        assert store.get(KEY, start, size) == data[start : start + size]
    assert store.get(KEY, 40) == data[40:]
    assert store.get(KEY, 40, 0) == b""
    assert store.get(KEY, 100) == b""


@pytest.mark.parametrize("data", [[], [b""], [b"", b""]])
def test_object_without_a_byte_is_an_object(stores: ObjectBench, data: list[bytes]):
    store = stores.open()
    store.put(KEY, data)
    assert store.get(KEY) == b""
    assert store.get(KEY, 0, 10) == b""


def test_large_objects_come_back_whole_and_by_part(stores: ObjectBench):
    store = stores.open()
    data = bytes(range(256)) * (9 * MEBIBYTE // 256) + b"end"
    store.put(KEY, [memoryview(data)[:MEBIBYTE], memoryview(data)[MEBIBYTE:]])
    assert store.get(KEY) == data
    for start, size in ((4 * MEBIBYTE - 10, 20), (3 * MEBIBYTE, 4 * MEBIBYTE), (9 * MEBIBYTE, 100)):
        assert store.get(KEY, start, size) == data[start : start + size]


def test_keys_are_taken_as_they_are(stores: ObjectBench):
    store = stores.open()
    keys = [KEY, f"{KEY}.index", "a", "a/b", "a-b_c.d"]
    for key in keys:
        store.put(key, [key.encode()])
    assert [store.get(key) for key in keys] == [key.encode() for key in keys]
    with pytest.raises(Missing):
        store.get("prefix/cluster")


def test_put_may_be_repeated_with_the_same_bytes(stores: ObjectBench):
    store = stores.open()
    for _ in range(2):
        store.put(KEY, [b"data"])
        stores.open().put(KEY, [b"da", b"ta"])
    assert store.get(KEY) == b"data"


def test_object_that_is_not_there_is_missing(stores: ObjectBench):
    store = stores.open()
    for arguments in ((), (0, 10), (10,), (0, 0)):
        with pytest.raises(Missing):
            store.get(KEY, *arguments)


def test_deleted_objects_are_missing_and_the_others_stay(stores: ObjectBench):
    store = stores.open()
    keys = [f"object {number}" for number in range(5)]
    for key in keys:
        store.put(key, [key.encode()])
    store.delete([])
    store.delete(["object 1", "unknown", "object 3"])
    store.delete(key for key in ["object 1", "object 4"])
    for key in ("object 1", "object 3", "object 4"):
        with pytest.raises(Missing):
            stores.open().get(key)
    assert [store.get(key) for key in ("object 0", "object 2")] == [b"object 0", b"object 2"]


def test_more_objects_are_deleted_than_one_request_of_s3_takes(stores: ObjectBench):
    store = stores.open()
    store.put(KEY, [b"data"])
    store.delete([*(f"unknown {number}" for number in range(1_500)), KEY])
    with pytest.raises(Missing):
        store.get(KEY)


def test_many_threads_use_one_store(stores: ObjectBench):
    store = stores.open()

    def use(number: int) -> bytes:
        data = b"%d" % number * 10_000
        store.put(f"object {number}", [data])
        found = store.get(f"object {number}", 5, 1_000)
        assert found == data[5:1_005]
        store.put(f"removed {number}", [data])
        store.delete([f"removed {number}"])
        return store.get(f"object {number}")

    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(use, range(40))] == [b"%d" % number * 10_000 for number in range(40)]


def test_pickled_store_is_the_same_bucket(stores: ObjectBench):
    store = stores.open()
    store.put(KEY, [b"data"])
    other = pickle.loads(pickle.dumps(store))
    assert other.get(KEY) == b"data"
    other.put("other", [b"more"])
    other.close()
    assert store.get("other") == b"more"


@pytest.mark.parametrize("carried_out", [False, True])
def test_put_that_failed_is_repeated(stores: ObjectBench, carried_out: bool):
    store = stores.open()
    stores.fail_put(carried_out=carried_out)
    with pytest.raises(StoreFailed):
        store.put(KEY, [b"data"])
    if carried_out:
        assert store.get(KEY) == b"data"
    else:
        with pytest.raises(Missing):
            store.get(KEY)
    store.put(KEY, [b"data"])
    assert store.get(KEY) == b"data"


def test_closed_store_leaves_its_objects_to_the_others(stores: ObjectBench):
    store = stores.open()
    store.put(KEY, [b"data"])
    store.close()
    assert stores.open().get(KEY) == b"data"
