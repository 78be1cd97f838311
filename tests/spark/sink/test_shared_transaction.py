"""All tasks of a batch in one transaction, the driver's: option `transaction.scope` batch."""

import pytest

from exacta.client.transactions import end_transaction
from exacta.spark.sink.decision import Decision
from exacta.spark.sink.errors import NewerDriver, SinkError
from exacta.spark.sink.row_writer import RowWriter
from tests.spark.clusters import held_back


def shared(query, prepared, batch_id, task, rows, partition=None, **settings):
    """Run a task that writes to its own partition, in the driver's transaction."""
    partition = task if partition is None else partition
    return query.task(prepared, batch_id, task, rows, partition=partition, transaction_scope="batch", **settings)


@pytest.mark.usefixtures("way")
def test_a_batch_in_one_transaction(query):
    prepared = query.driver().prepare()
    results = [shared(query, prepared, 0, task, [task]) for task in range(3)]
    assert {result.producer for result in results} == {prepared.driver}
    query.driver().commit([*results, query.task(prepared, 0, 3, [])], 0, tasks=4, reads="these")
    assert query.rows() == [0, 1, 2]
    # Whichever way a replay goes, it only drains its input.
    prepared = query.driver().prepare()
    again = [shared(query, prepared, 0, 0, [0]), query.task(prepared, 0, 1, [1])]
    assert [result.replayed for result in again] == [True, True]
    query.driver().commit(again, 0, tasks=2, reads="these")
    assert query.rows() == [0, 1, 2]


@pytest.mark.usefixtures("way")
def test_one_transaction_before_its_decision_is_nothing(query):
    prepared, driver = query.driver().prepare(), query.driver()
    results = [shared(query, prepared, 0, task, [task]) for task in range(2)]
    driver.cluster.put_decision(prepared.driver, Decision(0, 2, "Q", "file:/a", "these", ()))
    prepared = query.driver().prepare()
    assert prepared.decided_batch == -1
    with pytest.raises(NewerDriver):
        driver.commit(results, 0, tasks=2, reads="these")
    driver.abort(results)
    results = [shared(query, prepared, 0, task, [task]) for task in range(2)]
    query.driver().commit(results, 0, tasks=2, reads="these")
    assert query.rows() == [0, 1]


def test_two_writers_of_one_partition_in_one_transaction_are_refused(query, monkeypatch):
    """The broker took the second one's records for repeats of the first one's."""
    prepared = query.driver().prepare()
    # Two that begin in the same instant do not see each other.
    monkeypatch.setattr("exacta.spark.sink.task._share", lambda *_: (prepared.driver, frozenset()))
    results = [shared(query, prepared, 0, task, [task], partition=1) for task in range(2)]
    with pytest.raises(SinkError, match=r"several tasks wrote to partition 1 .* exacta\.spark\.one_task_per_partition"):
        query.driver().commit(results, 0, tasks=2, reads="these")
    query.driver().abort(results)
    assert query.rows() == []


def test_no_task_is_repeated_within_one_transaction(query):
    prepared = query.driver().prepare()
    result = shared(query, prepared, 0, 0, [0])
    with pytest.raises(SinkError, match="no task can be repeated: the batch is given up"):
        shared(query, prepared, 0, 1, [1], attempt=1)
    query.driver().abort([result, None])
    with pytest.raises(SinkError, match="was ended before its task 2 began"):
        shared(query, prepared, 0, 2, [2])
    assert held_back(query.client.bootstrap, query.topic) == {}
    assert query.rows() == []


@pytest.mark.usefixtures("way")
def test_a_stage_that_is_run_again_writes_nothing_into_a_transaction_that_all_share(query, monkeypatch):
    """Spark counts its attempts from zero, and a broker would take its records for repeats of the first ones."""
    prepared = query.driver().prepare()
    shared(query, prepared, 0, 0, [0, 1, 2])  # its worker is killed, and nobody hears of it
    with pytest.raises(SinkError, match=r"partition 0 of topic .* is already written to in this batch's transaction"):
        shared(query, prepared, 0, 0, [2, 1, 0])
    # What fails by itself has given up the transaction, and its epoch.
    prepared = query.driver().prepare()
    with monkeypatch.context() as patch:
        patch.setattr("exacta.spark.sink.task.RowWriter", failing_at_the_end)
        with pytest.raises(pytest.fail.Exception):
            shared(query, prepared, 0, 0, [0, 1, 2])
    with pytest.raises(SinkError, match="was ended before its task 0 began"):
        shared(query, prepared, 0, 0, [2, 1, 0])
    assert held_back(query.client.bootstrap, query.topic) == {}
    assert query.rows() == []


def failing_at_the_end(*arguments, **named):
    """Make a writer that sends what it is given, and fails."""
    writer = RowWriter(*arguments, **named)
    flush = writer.flush

    def flush_and_fail(**named):
        flush(**named)
        pytest.fail("fails here")

    writer.flush = flush_and_fail
    return writer


def test_one_transaction_that_was_ended_from_outside_is_not_decided_about(query):
    """The decision record alone would begin another one with the same epoch."""
    prepared = query.driver().prepare()
    result = shared(query, prepared, 0, 0, [0])
    end_transaction(query.client, prepared.driver, commit=False)
    with pytest.raises(SinkError, match="was ended before its batch was decided"):
        query.driver().commit([result], 0, tasks=1, reads="these")
    query.driver().abort([result])
    prepared = query.driver().prepare()
    assert prepared.decided_batch == -1
    query.driver().commit([shared(query, prepared, 0, 0, [0])], 0, tasks=1, reads="these")
    assert query.rows() == [0]


@pytest.mark.usefixtures("way")
def test_what_timed_out_in_part_is_repeated_in_one_transaction(query):
    query.settings["replay_deterministic"] = True
    query.decide_and_time_out(0, timed_out=[0, 2])
    for _ in range(2):
        prepared = query.driver().prepare()
        results = [shared(query, prepared, 0, task, [task]) for task in range(3)]
        query.driver().commit(results, 0, tasks=3, reads="these")
        assert query.rows() == [0, 1, 2]
    assert query.driver().prepare().committed_tasks is None
