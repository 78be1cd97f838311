"""The operating system's calls: what is done a piece at a time comes to the same as what is done at once."""

import os
import time
from pathlib import Path

import pytest

from exacta.adapters.local.background_files import BackgroundFiles
from exacta.adapters.local.files import PosixFiles, read_file, write_fully

MIB = 1 << 20


class Calls:
    """What the operating system was asked for, in place of sleeping and syncing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slept_s = 0.0
        self.synced_at: list[int] = []
        self.sizes: list[int] = []
        self.clock_s = 0.0
        truncate = os.ftruncate

        def sync(handle: int) -> None:
            self.synced_at.append(os.fstat(handle).st_size)
            self.clock_s += 1.0

        def shorten(handle: int, size: int) -> None:
            truncate(handle, size)
            self.sizes.append(size)

        def sleep(seconds: float) -> None:
            self.slept_s += seconds

        monkeypatch.setattr(os, "fdatasync", sync)
        monkeypatch.setattr(os, "fsync", sync)
        monkeypatch.setattr(os, "ftruncate", shorten)
        monkeypatch.setattr(time, "sleep", sleep)
        monkeypatch.setattr(time, "monotonic", lambda: self.clock_s)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


@pytest.mark.parametrize("sizes", [[3 * MIB + 5], [100] * 20, [7, 2 * MIB, 0, 600_000, 9], []])
def test_what_is_written_in_the_background_is_all_there(tmp_path: Path, calls: Calls, sizes: list[int]) -> None:
    buffers = [os.urandom(size) for size in sizes]
    files = BackgroundFiles(tmp_path)
    handle = files.create("a")
    write_fully(files, handle, buffers, 0)
    files.sync(handle)
    files.close(handle)
    assert read_file(files, "a") == b"".join(buffers)


def test_the_disk_has_little_to_sync_in_the_background_and_long_rests(tmp_path: Path, calls: Calls) -> None:
    files = BackgroundFiles(tmp_path)
    handle = files.create("a")
    write_fully(files, handle, [bytes(3 * MIB), bytes(MIB)], 0)
    files.close(handle)
    assert calls.synced_at == [step * MIB // 2 for step in range(1, 9)]
    assert calls.slept_s == pytest.approx(3 * len(calls.synced_at))


def test_little_is_written_without_a_rest(tmp_path: Path, calls: Calls) -> None:
    files = BackgroundFiles(tmp_path)
    handle = files.create("a")
    write_fully(files, handle, [bytes(1000)] * 10, 0)
    files.close(handle)
    assert calls.synced_at == []
    assert calls.slept_s == 0


@pytest.mark.parametrize(("size", "left"), [(0, []), (4 * MIB, []), (4 * MIB + 1, [1]), (10 * MIB, [6 * MIB, 2 * MIB])])
def test_a_large_file_is_freed_in_pieces(tmp_path: Path, calls: Calls, size: int, left: list[int]) -> None:
    files = locked(tmp_path)
    (tmp_path / "large").write_bytes(bytes(size))
    (tmp_path / "other").touch()
    files.remove_gradually("large", lambda: False)
    assert sorted(files.names()) == ["lock", "other"]
    assert calls.sizes == left
    assert calls.slept_s == pytest.approx(0.01 * len(left))


def locked(directory: Path) -> PosixFiles:
    """Return the files of a directory that is known to count links."""
    files = PosixFiles(directory)
    files.lock()
    return files


def test_once_it_is_stopped_the_rest_is_freed_at_once(tmp_path: Path, calls: Calls) -> None:
    files = locked(tmp_path)
    (tmp_path / "large").write_bytes(bytes(20 * MIB))
    files.remove_gradually("large", lambda: bool(calls.sizes))
    assert files.names() == ["lock"]
    assert calls.sizes == [16 * MIB]


def test_a_file_that_may_not_be_written_to_is_removed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = locked(tmp_path)
    (tmp_path / "large").write_bytes(bytes(5 * MIB))

    def refuse(name: str, *, writable: bool = False) -> int:
        raise PermissionError(name)

    monkeypatch.setattr(files, "open", refuse)
    files.remove_gradually("large", lambda: False)
    assert files.names() == ["lock"]


def test_a_copy_under_another_name_stays_whole(tmp_path: Path) -> None:
    files = locked(tmp_path)
    content = os.urandom(10 * MIB)
    (tmp_path / "large").write_bytes(content)
    os.link(tmp_path / "large", tmp_path / "copy")
    files.remove_gradually("large", lambda: False)
    assert (tmp_path / "copy").read_bytes() == content


def test_a_file_that_is_not_there_cannot_be_removed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PosixFiles(tmp_path).remove_gradually("none", lambda: False)


def test_what_is_mapped_is_read_as_before_once_its_memory_is_let_go(tmp_path: Path) -> None:
    files = PosixFiles(tmp_path)
    content = os.urandom(3 * MIB)
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "empty").touch()
    view, empty = files.map("a"), files.map("empty")
    assert view == content
    mapped_kib = _mapped_kib(tmp_path / "a")
    files.release_mapped(view[8:16].cast("q"))
    files.release_mapped(empty)
    if mapped_kib is not None:
        left_kib = _mapped_kib(tmp_path / "a")
        assert left_kib is not None
        assert left_kib < mapped_kib
    files.remove("a")
    assert (bytes(view), bytes(empty)) == (content, b"")


def _mapped_kib(path: Path) -> int | None:
    """Return how much of a mapped file is resident; None: this system does not tell."""
    smaps = Path("/proc/self/smaps")
    if not smaps.exists():
        return None
    lines = iter(smaps.read_text().splitlines())
    for line in lines:
        if line.endswith(str(path)):
            return next(int(each.split()[1]) for each in lines if each.startswith("Rss:"))
    raise AssertionError(f"{path} is not mapped")
