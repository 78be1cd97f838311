"""Batch jobs against a real broker, with the calls that Spark makes, made by hand."""

import logging
import pickle
from types import SimpleNamespace

import pyarrow as pa
import pytest

from exacta.client.errors import KafkaError
from exacta.client.routing import Client
from exacta.client.transactions import list_transactions
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark import cleaning
from exacta.spark.options import SinkOptions
from exacta.spark.sink.batch_sink import ExactaBatchWriter
from exacta.spark.sink.cluster import QueryOnCluster
from exacta.spark.sink.errors import NewerDriver, SinkError
from exacta.spark.sink.names import QueryNames
from exacta.spark.sink.protocol import SinkDriver
from exacta.spark.sink.query_records import QueryRecords
from tests.spark.clusters import held_back, new_topic, on_marker_topics, read_committed


class Work:
    """One job: a writer in the planner, its copies in the tasks, and a further copy where the job ends."""

    def __init__(self, bootstrap, monkeypatch, **settings):
        self.client = Client(bootstrap)
        self.topic = new_topic(bootstrap, 3)
        self._monkeypatch = monkeypatch
        self._settings = {"bootstrap": bootstrap, "topic": self.topic, "transaction_timeout_ms": 60_000, **settings}
        self.begin()

    def begin(self):
        self._sent = pickle.dumps(ExactaBatchWriter(SinkOptions(**self._settings), None))

    def copy(self):
        return pickle.loads(self._sent)

    def task(self, task, rows, attempt=0):
        context = SimpleNamespace(
            partitionId=lambda: task, attemptNumber=lambda: attempt, getLocalProperty={"spark.app.name": "a job"}.get
        )
        self._monkeypatch.setattr("pyspark.TaskContext.get", lambda: context)
        batch = pa.RecordBatch.from_arrays([pa.array([b"%d" % row for row in rows])], names=["value"])
        return pickle.loads(pickle.dumps(self.copy().write(iter([batch]))))

    def rows(self, **settings):
        return sorted(int(value) for _, _, value in read_committed(self.client.bootstrap, self.topic, **settings))

    def held_back(self):
        return held_back(self.client.bootstrap, self.topic)

    def open(self):
        return list_transactions(self.client, self.names.prefix)

    @property
    def names(self):
        return QueryNames(self.copy()._job.prepared.name)

    def driver(self):
        prepared = self.copy()._job.prepared
        return SinkDriver(
            self.client,
            prepared.name,
            query_id=prepared.query_id,
            location="",
            marker=prepared.marker,
            transaction_timeout_ms=60_000,
        )


@pytest.fixture
def work(bootstrap, monkeypatch):
    made = Work(bootstrap, monkeypatch)
    yield made
    made.client.close()


@on_marker_topics
def test_nothing_is_visible_before_the_commit_and_everything_after_it(work):
    messages = [work.task(task, [task]) for task in range(3)]
    messages.append(work.task(3, []))
    assert work.held_back()
    work.copy().commit(messages)
    assert work.rows() == [0, 1, 2]
    assert work.open() == []


@pytest.mark.parametrize("scope", ["task", "batch"])
@pytest.mark.parametrize("step", ["at_once", "one_by_one"])
def test_a_job_that_is_committed_leaves_no_groups(bootstrap, monkeypatch, request, caplog, scope, step):
    if step == "one_by_one":
        request.getfixturevalue("one_by_one")
    caplog.set_level(logging.INFO, "exacta.spark")
    work = Work(bootstrap, monkeypatch, transaction_scope=scope)
    name = work.names.name
    assert f"exacta spark clean --query {name}" in caplog.text
    messages = [work.task(0, [0])] if scope == "batch" else [work.task(task, [task]) for task in range(3)]
    work.copy().commit(messages)
    assert cleaning.find(work.client, name).groups == ()
    assert work.rows() == list(range(len(messages)))
    work.client.close()


def test_a_user_who_may_not_delete_groups_still_commits(work, monkeypatch):
    def refuse(*_):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "deleting group")

    monkeypatch.setattr(cleaning, "delete_group", refuse)
    work.copy().commit([work.task(0, [0])])
    assert work.rows() == [0]


def test_a_job_that_fails_leaves_nothing_behind(work):
    """Neither of tasks that told, nor of one that never did, nor of an earlier attempt."""
    messages = [work.task(0, [0]), None, work.task(2, [2], attempt=1)]
    work.task(1, [1])
    work.task(2, [2])
    work.copy().abort(messages)
    assert (work.held_back(), work.open(), work.rows()) == ({}, [], [])
    # A straggler of it is too late.
    with pytest.raises(NewerDriver):
        work.task(3, [3])


def test_a_job_of_which_no_task_has_told_anything(work):
    work.task(0, [0])
    work.copy().abort([None, None])
    assert (work.held_back(), work.open(), work.rows()) == ({}, [], [])


def test_losing_attempts_are_swept_by_the_commit(work):
    work.task(0, [0])
    messages = [work.task(0, [0], attempt=1), work.task(1, [1])]
    work.copy().commit(messages)
    assert (work.rows(), work.open()) == ([0, 1], [])


def test_a_commit_that_raises_before_the_decision_is_aborted(work, monkeypatch):
    messages = [work.task(task, [task]) for task in range(2)]
    monkeypatch.setattr(QueryRecords, "put_decision", lambda *_: pytest.fail("killed here"))
    with pytest.raises(pytest.fail.Exception):
        work.copy().commit(messages)
    work.copy().abort(messages)
    assert (work.held_back(), work.open(), work.rows()) == ({}, [], [])


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("ended", [0, 1, 2])
def test_a_driver_that_dies_between_the_decision_and_the_last_end(work, monkeypatch, ended):
    """The record tells what was decided; the driver that takes the job over commits the rest."""
    messages = [work.task(task, [task]) for task in range(3)]
    plain = QueryOnCluster.end_all

    def some(cluster, entries):
        plain(cluster, list(entries)[:ended])
        pytest.fail("killed here")

    monkeypatch.setattr(QueryOnCluster, "end_all", some)
    with pytest.raises(pytest.fail.Exception):
        work.copy().commit(messages)
    monkeypatch.undo()
    # Should Spark still get to say that the job failed, nothing that was decided is undone.
    work.copy().abort(messages)
    assert len(work.open()) == 3 - ended
    work.driver().prepare()
    assert (work.rows(), work.open()) == ([0, 1, 2], [])


def test_tasks_that_spark_forgot_are_not_decided_without(work):
    with pytest.raises(SinkError, match="some of whose tasks have sent nothing"):
        work.copy().commit([work.task(0, [0]), None])


def test_the_next_job_writes_whatever_the_one_before_it_wrote(work):
    work.copy().commit([work.task(0, [0])])
    work.begin()
    work.copy().commit([work.task(0, [0])])
    assert work.rows() == [0, 0]


def test_at_least_once_needs_no_transaction(bootstrap, monkeypatch):
    work = Work(bootstrap, monkeypatch, exactly_once=False)
    messages = [work.task(0, [0]), work.task(1, [1])]
    assert work.rows() == [0, 1]
    work.copy().commit(messages)
    work.copy().abort([*messages, None])
    assert work.rows() == [0, 1]
    work.client.close()
