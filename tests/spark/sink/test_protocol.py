"""The sink's protocol against a real broker, with a stand-in for Spark."""

from operator import attrgetter
from typing import Any

import pyarrow as pa
import pytest

from exacta.client.transactions import TopicPartition, commit_offset, end_transaction, init_producer_id
from exacta.spark.options import SinkOptions
from exacta.spark.sink.decision import Decision, DecisionEntry
from exacta.spark.sink.errors import (
    CopiedCheckpoint,
    EndedBeforeItsTime,
    ForeignRecords,
    HalfCommitted,
    NewerDriver,
    SinkError,
)
from exacta.spark.sink.protocol import SinkDriver
from exacta.spark.sink.row_writer import RowWriter
from exacta.spark.sink.task import write_task
from tests.spark.clusters import held_back, new_topic

# --- single steps -----------------------------------------------------------------------------------------------------


def test_a_decided_batch_that_timed_out_whole_is_run_again(query):
    query.decide_and_time_out(0, timed_out=[0, 1, 2])
    prepared = query.driver().prepare()
    results = [query.task(prepared, 0, task, [task]) for task in range(3)]
    assert not any(result.replayed for result in results)
    query.driver().commit(results, 0, tasks=3, reads="these")
    assert query.rows() == [0, 1, 2]


def test_a_decided_batch_that_timed_out_in_part_stops_the_query(query):
    query.decide_and_time_out(0, timed_out=[1])
    with pytest.raises(HalfCommitted, match="of batch 0, 1 of 3 transactions timed out"):
        query.driver().prepare()


def test_or_only_the_rest_of_it_is_run_again_where_the_slicing_is_the_same(query):
    query.settings["replay_deterministic"] = True
    query.decide_and_time_out(0, timed_out=[1])
    for _ in range(2):  # and once more, after a crash that follows the second decision
        prepared = query.driver().prepare()
        results = [query.task(prepared, 0, task, [task]) for task in range(3)]
        query.driver().commit(results, 0, tasks=3, reads="these")
    assert [result.replayed for result in results] == [True, True, True]
    assert query.rows() == [0, 1, 2]
    query.decide_and_time_out(1, timed_out=[0, 2])
    prepared = query.driver().prepare()
    results = [query.task(prepared, 1, task, [10 + task]) for task in range(3)]
    assert [result.replayed for result in results] == [False, True, False]
    with pytest.raises(SinkError, match="batch 1 had 3 tasks when a part of it was committed and has 4 now"):
        query.driver().commit(results, 1, tasks=4, reads="these")
    query.driver().commit(results, 1, tasks=3, reads="these")
    assert query.rows() == [0, 1, 2, 10, 11, 12]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("counts", [0, 1])
def test_an_attempt_of_a_stage_that_is_run_again_leaves_the_first_one_alone(query, counts):
    prepared = query.driver().prepare()
    attempts = [query.task(prepared, 0, 0, [7]) for _ in range(2)]
    assert attempts[0].producer != attempts[1].producer
    query.driver().commit([attempts[counts], query.task(prepared, 0, 1, [8])], 0, tasks=2, reads="these")
    assert held_back(query.client.bootstrap, query.topic) == {}
    assert query.rows() == [7, 8]


@pytest.mark.usefixtures("one_by_one")
def test_a_straggler_that_takes_a_decided_attempts_place_does_not_hold_the_commit_up(query, monkeypatch):
    """Its batch is torn then; but that is said, and not waited for."""
    query.client.call_timeout_ms = 5_000
    prepared, driver = query.driver().prepare(), query.driver()
    results = [query.task(prepared, 0, task, [task]) for task in range(2)]
    plain = driver.cluster.end_all

    def straggle_first(entries):
        names = query.names
        init_producer_id(query.client, names.attempt(0, 0), transaction_timeout_ms=60_000)
        query.task(prepared, 0, 0, [0])
        return plain(entries)

    monkeypatch.setattr(driver.cluster, "end_all", straggle_first)
    with pytest.raises(SinkError, match=r"the transactions of tasks \[0\] of batch 0 were ended by someone else"):
        driver.commit(results, 0, tasks=2, reads="these")


def test_a_losing_attempt_that_writes_only_after_the_commit_is_fenced(query, monkeypatch):
    """It took its id before, so that nothing of it was open when the commit swept."""
    prepared = query.driver().prepare()
    results = [query.task(prepared, 0, 0, [0])]

    def commit_first(*arguments, **named):
        query.driver().commit(results, 0, tasks=1, reads="these")
        return RowWriter(*arguments, **named)

    monkeypatch.setattr("exacta.spark.sink.task.RowWriter", commit_first)
    with pytest.raises(SinkError, match="was ended while the task was writing"):
        query.task(prepared, 0, 0, [0], attempt=1)
    assert held_back(query.client.bootstrap, query.topic) == {}
    assert query.rows() == [0]


def test_a_named_job_with_another_checkpoint_is_refused_and_the_running_one_not_harmed(query):
    running = query.driver().prepare()
    query.driver().commit([query.task(running, 0, 0, [0])], 0, tasks=1, reads="these")
    running = query.driver().prepare()
    with pytest.raises(
        ForeignRecords, match="has committed batches up to 0 as query Q, from the checkpoint at 'file:/a'"
    ):
        query.driver(query_id="R", location="file:/b").prepare()
    query.driver().commit([query.task(running, 1, 0, [1])], 1, tasks=1, reads="those")
    assert query.rows() == [0, 1]


def test_an_older_driver_decides_nothing(query, way):
    old = query.driver().prepare()
    result = query.task(old, 0, 0, [1])
    new = query.driver().prepare()
    with pytest.raises(NewerDriver if way == "at once" else EndedBeforeItsTime):
        query.driver().commit([result], 0, tasks=1, reads="these")
    with pytest.raises(NewerDriver):
        query.driver().cluster.decide(old.driver, Decision(0, 1, "Q", "file:/a", "these", ()))
    with pytest.raises(NewerDriver):
        query.task(old, 0, 1, [2])
    # Its abort leaves the newer one alone.
    fresh = query.task(new, 0, 0, [1])
    query.driver().abort([result, None])
    query.driver().commit([fresh], 0, tasks=1, reads="these")
    assert query.rows() == [1]


def test_abort_ends_what_the_tasks_left_open_and_what_never_spoke(query):
    prepared = query.driver().prepare()
    done, silent = query.task(prepared, 0, 0, [1]), query.task(prepared, 0, 1, [2])
    assert silent.producer is not None
    query.driver().abort([done, None])
    assert held_back(query.client.bootstrap, query.topic) == {}
    # Also attempts of which earlier ones never took their id.
    prepared = query.driver().prepare()
    done, silent = query.task(prepared, 0, 0, [1]), query.task(prepared, 0, 1, [2], attempt=3)
    query.driver().abort([done, None])
    assert held_back(query.client.bootstrap, query.topic) == {}
    # A task of that batch that only begins now is too late.
    with pytest.raises(NewerDriver):
        query.task(prepared, 0, 2, [3])
    assert query.rows() == []


@pytest.mark.parametrize("batch_id", [0, 1])
@pytest.mark.parametrize("told", ["nothing", "in part", "everything"])
@pytest.mark.parametrize("moment", ["prepared", "written", "decided", "half ended"])
def test_the_abort_of_an_older_driver_leaves_a_newer_one_alone(query, moment, told, batch_id):
    old = query.driver().prepare()
    results = [query.task(old, 0, task, [task]) for task in range(2)]
    outdated = {"nothing": [None, None], "in part": [results[0], None], "everything": results}[told]
    new, driver = query.driver().prepare(), query.driver()
    if moment == "prepared":
        query.driver().abort(outdated)
    results = [query.task(new, batch_id, task, [task]) for task in range(2)]
    if moment == "written":
        query.driver().abort(outdated)
    if moment in ("decided", "half ended"):
        entries = [DecisionEntry(result.task, 0, *result.producer[1:]) for result in results]
        driver.cluster.decide(new.driver, Decision(batch_id, 2, "Q", "file:/a", "these", tuple(entries)))
        if moment == "half ended":
            driver.cluster.end_all(entries[:1])
        query.driver().abort(outdated)
        assert driver.cluster.end_all(entries) == []
    else:
        driver.commit(results, batch_id, tasks=2, reads="these")
    assert query.rows() == [0, 1]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("ending", ["abort", "commit"])
@pytest.mark.parametrize("step", ["decision", "sweep", "sweeper.silent_attempts", "sweeper.fence"])
def test_a_newer_driver_that_begins_in_the_middle_of_the_end_of_an_older_one(query, monkeypatch, ending, step):
    old, older = query.driver().prepare(), query.driver()
    results = [query.task(old, 0, task, [task]) for task in range(2)]
    query.task(old, 0, 0, [0], attempt=1)  # a loser for the sweep
    plain = attrgetter(f"cluster.{step}")(older)
    newer: list[Any] = []

    def take_over_first(*arguments, **named):
        if not newer:
            prepared = query.driver().prepare()
            # Where the older one was done deciding, the query goes on with the next batch.
            batch_id = prepared.decided_batch + 1
            newer.append((batch_id, [query.task(prepared, batch_id, task, [10 + task]) for task in range(2)]))
        return plain(*arguments, **named)

    owner, _, method = f"cluster.{step}".rpartition(".")
    monkeypatch.setattr(attrgetter(owner)(older), method, take_over_first)
    older.abort([results[0], None]) if ending == "abort" else older.commit(results, 0, tasks=2, reads="these")
    if newer:
        batch_id, results = newer[0]
        query.driver().commit(results, batch_id, tasks=2, reads="these")
        assert query.rows() == ([10, 11] if ending == "abort" else [0, 1, 10, 11])
    else:
        assert (ending, step) in (("commit", "decision"), ("commit", "sweeper.silent_attempts"))


@pytest.mark.usefixtures("way")
def test_a_transaction_that_was_ended_from_outside_is_not_decided_about(query, monkeypatch):
    """Its rows are gone, and the marker began another one with the same epoch."""

    def end_first(client, producer, *arguments):
        end_transaction(client, producer, commit=False)
        commit_offset(client, producer, *arguments)

    prepared = query.driver().prepare()
    monkeypatch.setattr("exacta.spark.sink.task.commit_offset", end_first)
    result = query.task(prepared, 0, 0, [1])
    with pytest.raises(SinkError, match="was ended before its batch was decided"):
        query.driver().commit([result], 0, tasks=1, reads="these")
    monkeypatch.undo()
    query.driver().abort([result])
    query.driver().commit([query.task(query.driver().prepare(), 0, 0, [1])], 0, tasks=1, reads="these")
    assert query.rows() == [1]


def test_a_task_that_an_abort_has_missed_opens_nothing(query, monkeypatch):
    prepared = query.driver().prepare()
    spoken = query.task(prepared, 0, 1, [1])

    def abort_first(client, transactional_id, **settings):
        if transactional_id == query.names.attempt(0, 0):
            query.driver().abort([None, spoken])
        return init_producer_id(client, transactional_id, **settings)

    monkeypatch.setattr("exacta.spark.sink.incarnations.init_producer_id", abort_first)
    with pytest.raises(NewerDriver):
        query.task(prepared, 0, 0, [0])
    assert held_back(query.client.bootstrap, query.topic) == {}


def test_abort_leaves_a_decided_batch_alone(query):
    driver = query.driver()
    prepared = driver.prepare()
    result = query.task(prepared, 0, 0, [1])
    loser = query.task(prepared, 0, 1, [2])
    driver.cluster.decide(
        prepared.driver, Decision(0, 2, "Q", "file:/a", "these", (DecisionEntry(0, 0, *result.producer[1:]),))
    )
    query.driver().abort([result, loser])
    assert query.driver().prepare().decided_batch == 0
    assert query.rows() == [1]


def test_a_decision_about_hundreds_of_tasks(query, way):
    prepared = query.driver().prepare()
    results = [query.task(prepared, 0, task, [task]) for task in range(250)]
    driver = query.driver()
    after_the_decision = "sweep" if way == "at once" else "end_all"
    setattr(driver.cluster, after_the_decision, lambda *_: pytest.fail("killed here"))
    with pytest.raises(pytest.fail.Exception):
        driver.commit(results, 0, tasks=250, reads="these")
    assert query.driver().prepare().decided_batch == 0
    assert query.rows() == list(range(250))


@pytest.mark.usefixtures("way")
def test_tasks_without_rows_and_batches_without_any(query):
    prepared = query.driver().prepare()
    assert query.task(prepared, 0, 0, []).producer is None
    query.driver().commit([query.task(prepared, 0, 0, []), query.task(prepared, 0, 1, [1])], 0, tasks=2, reads="these")
    assert query.rows() == [1]
    query.driver().commit([query.task(query.driver().prepare(), 1, 0, [])], 1, tasks=1, reads="these")
    assert query.driver().prepare().decided_batch == 0


def test_a_checkpoint_that_went_back_in_time_is_refused(query):
    for batch_id in range(2):
        prepared = query.driver().prepare()
        query.driver().commit([query.task(prepared, batch_id, 0, [batch_id])], batch_id, tasks=1, reads="these")
    with pytest.raises(SinkError, match="it repeats batch 0, but batch 1 of this query is committed"):
        query.task(query.driver().prepare(), 0, 0, [0])


def test_a_copy_is_found_out_before_it_fences_the_original(query):
    prepared = query.driver().prepare()
    query.driver().commit([query.task(prepared, 0, 0, [0])], 0, tasks=1, reads="these")
    running = query.driver().prepare()
    with pytest.raises(CopiedCheckpoint, match="'file:/b' is a copy"):
        query.driver(location="file:/b").prepare()
    query.driver().commit([query.task(running, 1, 0, [1])], 1, tasks=1, reads="these")
    assert query.rows() == [0, 1]
    with pytest.raises(CopiedCheckpoint, match=r"set option 'checkpoint\.moved\.from' to 'file:/a'"):
        query.driver(location="file:/b", moved_from="file:/c").prepare()
    assert query.driver(location="file:/b", moved_from="file:/a").prepare().decided_batch == 1


def test_the_copy_of_a_query_that_decides_meanwhile_is_found_out_too(query, monkeypatch):
    copy, plain = query.driver(location="file:/b"), SinkDriver._check_identity

    def decide_after(driver):
        found = plain(driver)
        query.driver().commit([query.task(query.driver().prepare(), 0, 0, [0])], 0, tasks=1, reads="these")
        return found

    monkeypatch.setattr(
        SinkDriver, "_check_identity", lambda driver: (decide_after if driver is copy else plain)(driver)
    )
    with pytest.raises(CopiedCheckpoint):
        copy.prepare()


def test_a_batch_of_the_same_number_that_reads_other_offsets_is_refused(query):
    """A checkpoint that was restored, or lost its last file, plans the last batch again."""
    query.driver().commit([query.task(query.driver().prepare(), 0, 0, [0])], 0, tasks=1, reads="0 to 100")
    result = query.task(query.driver().prepare(), 0, 0, [0, 1])
    with pytest.raises(SinkError, match="batch 0 of this query is committed, but it covered other offsets"):
        query.driver().commit([result], 0, tasks=1, reads="0 to 150")
    query.driver().commit([result], 0, tasks=1, reads="0 to 100")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({0: [0], 1: [1]}, "batch 0 had 3 tasks when a part of it was committed and has 2 now"),
        ({0: [0], 1: [1], 2: []}, r"tasks \[2\] of batch 0 had rows when the other part of it was committed"),
    ],
)
def test_rows_of_a_part_that_timed_out_are_not_forgotten_where_no_task_has_any_now(query, rows, reason):
    query.settings["replay_deterministic"] = True
    query.decide_and_time_out(0, timed_out=[2])
    prepared = query.driver().prepare()
    results = [query.task(prepared, 0, task, values) for task, values in rows.items()]
    with pytest.raises(SinkError, match=reason):
        query.driver().commit(results, 0, tasks=len(rows), reads="these")


def test_another_marker_topic_does_not_make_the_query_a_new_one(query):
    running = query.driver().prepare()
    query.driver().commit([query.task(running, 0, 0, [0])], 0, tasks=1, reads="these")
    running = query.driver().prepare()
    other = new_topic(query.client.bootstrap)
    with pytest.raises(SinkError, match=f"'transaction.marker.topic' to '{query.topic}'"):
        query.driver(marker=TopicPartition(other, 0)).prepare()
    # Nor was the running one fenced.
    query.driver().commit([query.task(running, 1, 0, [1])], 1, tasks=1, reads="those")
    assert query.rows() == [0, 1]


def test_a_time_out_that_the_broker_does_not_allow_is_explained(query):
    options = SinkOptions(bootstrap=query.client.bootstrap, topic=query.topic, transaction_timeout_ms=2_000_000_000)
    batch = pa.RecordBatch.from_arrays([pa.array([b"x"])], names=["value"])
    with pytest.raises(SinkError, match=r"lower option 'kafka\.transaction\.timeout\.ms'"):
        query.driver(transaction_timeout_ms=2_000_000_000).prepare()
    with pytest.raises(SinkError, match=r"lower option 'kafka\.transaction\.timeout\.ms'"):
        write_task(query.client, options, query.driver().prepare(), iter([batch]), batch_id=0, task=0, attempt=0)
