"""The metrics of the process and its disk."""

import os
from pathlib import Path

import pytest

from exacta.metrics import families, process


def test_a_file_that_goes_while_the_disk_is_looked_at_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    (journal / "stays").write_bytes(bytes(5))
    (journal / "goes").write_bytes(bytes(7))

    def scandir(path: Path) -> list["os.DirEntry[str]"]:
        with os.scandir(path) as found:
            entries = list(found)
        (journal / "goes").unlink()
        return entries

    monkeypatch.setattr(process, "os", type("os", (), {"scandir": staticmethod(scandir)}))
    found = {each.family: each.values[()] for each in process.disk(tmp_path)}
    assert found[families.JOURNAL_BYTES] == 5
    assert found.keys() == {families.JOURNAL_BYTES, families.DISK_FREE, families.DISK_BYTES}
