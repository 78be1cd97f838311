"""The sink leans on the calls that Spark makes for each micro-batch, which no documentation promises.

`sink.py` says why: preparing a batch is bound to pickling the writer, because only the process that plans a batch
pickles it, and must not happen where the batch is committed. If this test fails with a new release of PySpark, that
release is not safe until the protocol has been thought through again. `make test-with WHAT=spark-4.2` runs it
with the oldest release, `make test-spark` with the newest.
"""

import pytest

from tests.spark import observed
from tests.spark.clusters import check_exactly, new_topic
from tests.spark.queries import fill, reading, run, writing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def observing(spark):
    """The session, which knows the observed source."""
    observed.travel_by_value()
    spark.dataSource.register(observed.ObservedSource)
    return spark


def test_the_calls_of_each_batch(observing, bootstrap, tmp_path):
    source, sink = new_topic(bootstrap, 2), new_topic(bootstrap, 2)
    fill(bootstrap, source, range(300))
    rows = reading(observing, bootstrap, source, maxOffsetsPerTrigger=100).select("key", "value")
    run(writing(rows, bootstrap, tmp_path / "checkpoint", form="observed", topic=sink, diary=str(tmp_path)))
    check_exactly(bootstrap, sink, range(300))

    batches: list[list[observed.Call]] = [[]]
    for call in observed.calls(tmp_path):
        batches[-1].append(call)
        if call.method == "commit":
            batches.append([])
    assert batches.pop() == [], "calls after the last commit"
    assert len(batches) >= 3
    for number, batch in enumerate(batches):
        # The planner: one writer, pickled twice. Then a task for each partition. Then another writer, to commit.
        assert [call.method for call in batch] == [
            *("streamWriter", "pickle", "pickle"),
            *("write", "write"),
            *("streamWriter", "commit"),
        ]
        planner, *pickles, one_task, other_task, committer, commit = batch
        assert {pickle.process for pickle in pickles} == {planner.process}
        assert commit.process == committer.process != planner.process
        assert {one_task.process, other_task.process}.isdisjoint({planner.process, committer.process})
        assert {one_task.task, other_task.task} == {0, 1}
        assert {one_task.batch, other_task.batch, commit.batch} == {number}
