"""Progress is read from files as Spark writes them."""

from exacta.demo.checkpoints import QueryProgress, read_progress


def write_batch(checkpoint, number, *, watermark_ms=0, source='{"flights":{"0":30,"1":12}}', done=True):
    for name, text in (
        ("offsets", f'v1\n{{"batchWatermarkMs":{watermark_ms},"batchTimestampMs":1,"conf":{{}}}}\n{source}'),
        *([("commits", 'v1\n{"nextBatchWatermarkMs":0}')] if done else []),
    ):
        (checkpoint / name).mkdir(parents=True, exist_ok=True)
        (checkpoint / name / str(number)).write_text(text)


def test_no_checkpoint_is_no_progress(tmp_path):
    assert read_progress(tmp_path / "none") == QueryProgress()


def test_the_first_batch_is_planned(tmp_path):
    write_batch(tmp_path, 0, done=False)
    progress = read_progress(tmp_path)
    assert progress == QueryProgress(last_planned=0)
    assert progress.in_flight


def test_the_last_batch_done_counts(tmp_path):
    for number in range(9, 12):
        write_batch(tmp_path, number, watermark_ms=number * 1000)
    write_batch(tmp_path, 12, source='{"flights":{"0":99,"1":99}}', done=False)
    (tmp_path / "commits" / ".13.a-temporary.tmp").write_text("")
    progress = read_progress(tmp_path)
    assert progress == QueryProgress(last_planned=12, last_done=11, offsets_done=42, watermark_ms=11_000)
    assert progress.in_flight
    write_batch(tmp_path, 12)
    assert not read_progress(tmp_path).in_flight


def test_offsets_that_were_purged_meanwhile_are_no_progress(tmp_path):
    write_batch(tmp_path, 3)
    (tmp_path / "offsets" / "3").unlink()
    assert read_progress(tmp_path) == QueryProgress(last_done=3)


def test_a_source_that_was_not_asked_yet_has_read_nothing(tmp_path):
    write_batch(tmp_path, 0, source="-")
    assert read_progress(tmp_path).offsets_done == 0
