"""A history file: what is written is read back; a broken one is refused in one line."""

import threading
from pathlib import Path

import pytest

from exacta.verify.analysis.verdict import analyse
from exacta.verify.history import FORMAT, HistoryError, encode
from exacta.verify.history_file import HistoryWriter, read_history
from tests.verify.model import clean_history


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    history = clean_history(1)
    with HistoryWriter(tmp_path / "history") as writer:
        for op in history:
            writer.write(op)
    assert list(read_history(tmp_path / "history")) == history
    with pytest.raises(HistoryError, match="cannot be written: File exists"):
        HistoryWriter(tmp_path / "history")


LINES = [encode(op) for op in clean_history(1)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"".join(LINES)[:-1], "is cut off in line"),
        (LINES[0] + b"nonsense\n", "line 2, is no operation of a history"),
        (LINES[0] + b"\xff\xfe\n", "line 2, is no operation of a history"),
        (LINES[0] + b'{"op":"poll"}\n', "line 2, is no operation of a history"),
        (LINES[1], "is no history: its first line"),
        (LINES[0] * 2, "is no history: its first line"),
        (LINES[0].replace(b'"format":%d' % FORMAT, b'"format":99'), "has format 99; this version reads format"),
        (LINES[0] + b'{"op":"commit","process":"a","transaction":"a.1","at_us":1}\n', "does not fit those before it"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "history"
    path.write_bytes(content)
    with pytest.raises(HistoryError, match=message) as refused:
        analyse(read_history(path))
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="cannot be read: No such file"):
        list(read_history(tmp_path / "none"))


def test_a_disk_that_is_full_is_one_line() -> None:
    writer = HistoryWriter.__new__(HistoryWriter)
    writer.path, writer._lock, writer._file = Path("/dev/full"), threading.Lock(), Path("/dev/full").open("wb")  # noqa: SIM115
    with pytest.raises(HistoryError, match="cannot be written: No space left on device"), writer:
        writer.write(clean_history(1)[0])
