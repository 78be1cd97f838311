"""The files of a checkpoint: one contract for each way to them. `test_identity.py` tries Spark's own file system."""

import pytest

from exacta.spark.sink.checkpoint_files import ArrowFiles, LocalFiles, files_at


def check_contract(files):
    """Check what is promised of the files of a checkpoint, in an empty folder."""
    with pytest.raises(FileNotFoundError):
        files.read("exacta/sink.json")
    assert list(files.names("exacta")) == []
    files.write("exacta/sink.json", b"one")
    assert files.read("exacta/sink.json") == b"one"
    files.write("exacta/sink.json", b"and two\n")
    assert files.read("exacta/sink.json") == b"and two\n"
    files.write("exacta/sink.a%2Fb.json", b"")
    assert files.read("exacta/sink.a%2Fb.json") == b""
    visible = [name for name in files.names("exacta") if not name.startswith(".")]
    assert sorted(visible) == ["sink.a%2Fb.json", "sink.json"]


@pytest.mark.parametrize("way", [lambda path: LocalFiles(str(path)), lambda path: ArrowFiles(path.as_uri())])
def test_the_contract(tmp_path, way):
    check_contract(way(tmp_path))


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch):
    files = LocalFiles(str(tmp_path))
    files.write("exacta/sink.json", b"one")

    def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space"):
        files.write("exacta/sink.json", b"two")
    assert files.read("exacta/sink.json") == b"one"
    assert files.names("exacta") == ["sink.json"]


def test_which_way_leads_to_a_location(tmp_path):
    for location in (str(tmp_path), tmp_path.as_uri(), f"file:{tmp_path}"):
        assert isinstance(files_at(location), LocalFiles)
    # Hadoop's names for S3 are one of pyarrow's.
    for scheme in ("s3", "s3a", "s3n"):
        files = files_at(f"{scheme}://bucket/a/")
        assert isinstance(files, ArrowFiles)
        assert files._uri == "s3://bucket/a"


def test_a_store_that_pyarrow_does_not_reach_is_said_with_what_does():
    with pytest.raises(OSError, match=r"reaches this place through pyarrow.*exacta\.spark\.write"):
        files_at("viewfs://cluster/a").read("metadata")
