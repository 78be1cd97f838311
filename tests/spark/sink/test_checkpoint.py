"""The sink reads a query's checkpoint: its id, its last planned batch, its location, and what a batch reads."""

import pytest

from exacta.spark.sink import checkpoint


def test_the_query_id_is_read_where_spark_writes_it(tmp_path):
    (tmp_path / "metadata").write_text('{"id":"0aa1"}')
    assert checkpoint.Checkpoint(str(tmp_path)).query_id() == "0aa1"
    assert checkpoint.Checkpoint(tmp_path.as_uri()).query_id() == "0aa1"
    with pytest.raises(checkpoint.CheckpointUnreadable, match="could not be read from the checkpoint at"):
        checkpoint.Checkpoint(str(tmp_path / "none")).query_id()


def test_the_current_batch_is_the_last_that_spark_has_planned(tmp_path):
    found = checkpoint.Checkpoint(str(tmp_path))
    assert found.current_batch() == 0
    (tmp_path / "offsets").mkdir()
    for name in ("9", "10", ".10.crc", ".11.tmp", "x"):
        (tmp_path / "offsets" / name).touch()
    assert found.current_batch() == 10


def test_what_a_batch_reads_is_told_by_its_offsets_and_its_watermark(tmp_path):
    found = checkpoint.Checkpoint(str(tmp_path))

    def written(offsets, watermark_ms=5, planned_ms=7):
        (tmp_path / "offsets").mkdir(exist_ok=True)
        metadata = f'{{"batchWatermarkMs":{watermark_ms},"batchTimestampMs":{planned_ms},"conf":{{}}}}'
        (tmp_path / "offsets" / "3").write_text(f"v1\n{metadata}\n{offsets}")
        return found.digest_of_batch(3)

    one = written('{"t":{"0":4}}')
    assert one == written('{"t":{"0":4}}', planned_ms=8)
    assert len({one, written('{"t":{"0":5}}'), written('{"t":{"0":4}}', watermark_ms=6), written("a\nb")}) == 4
    with pytest.raises(checkpoint.CheckpointUnreadable, match="what batch 4 reads could not be read"):
        found.digest_of_batch(4)
    (tmp_path / "offsets" / "4").write_text("v1\n{}\n1")
    with pytest.raises(checkpoint.CheckpointUnreadable):
        found.digest_of_batch(4)


def test_a_place_with_signs_of_an_address_in_its_name_is_found(tmp_path):
    """Spark tells the path of a checkpoint as it is, with nothing quoted."""
    odd = tmp_path / "a#b?c d"
    odd.mkdir()
    (odd / "metadata").write_text('{"id":"0aa1"}')
    assert checkpoint.Checkpoint(f"file:{odd}").query_id() == "0aa1"
    assert checkpoint.Checkpoint(str(odd)).query_id() == "0aa1"


def test_one_place_has_one_name(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    names = {
        checkpoint.canonical_location(location)
        for location in (
            str(tmp_path / "real"),
            f"{tmp_path}/real/",
            f"{tmp_path}/./link",
            (tmp_path / "real").as_uri(),
            f"file:{tmp_path}/real",
        )
    }
    assert len(names) == 1
    assert checkpoint.canonical_location("s3://bucket/a/") == "s3://bucket/a"
