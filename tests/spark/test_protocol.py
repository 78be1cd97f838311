"""The sink's protocol against a real broker, with a stand-in for Spark."""

import itertools
import threading
import uuid
from collections import Counter

import pyarrow as pa
import pytest

from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition, commit_offset, end_transaction, init_producer_id
from exacta.spark.decision import Decision, DecisionEntry
from exacta.spark.names import QueryNames
from exacta.spark.options import SinkOptions
from exacta.spark.protocol import CopiedCheckpoint, HalfCommitted, NewerDriver, SinkDriver, SinkError
from exacta.spark.task import write_task
from tests.conformance.brokers import broker_process
from tests.spark.clusters import check_exactly, held_back, new_topic, read_committed
from tests.spark.standin import Campaign


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shuffled", [False, True])
def test_every_row_once_whatever_is_killed(bootstrap, seed, shuffled):
    topic = new_topic(bootstrap)
    campaign = Campaign(bootstrap, topic, seed=seed, shuffled=shuffled)
    campaign.run()
    assert sum(campaign.crashes.values()) > 0
    check_exactly(bootstrap, topic, campaign.expected)


def test_the_campaign_finds_a_planted_fault(bootstrap, monkeypatch):
    """Tasks that never ask whether their rows are committed already write some of them twice."""
    monkeypatch.setattr("exacta.spark.task._is_committed", lambda *_: False)
    topic = new_topic(bootstrap)
    Campaign(bootstrap, topic, seed=1, crash_chance=0.8).run()
    counts = Counter(int(value) for _, _, value in read_committed(bootstrap, topic))
    assert [row for row, count in counts.items() if count > 1] != []


@pytest.mark.parametrize("seed", range(2))
def test_every_row_once_while_the_broker_is_killed_as_well(tmp_path, seed):
    with broker_process(tmp_path) as broker:
        topic = new_topic(broker.bootstrap)
        campaign = Campaign(broker.bootstrap, topic, seed=seed, batches=20)
        ended, crashes = threading.Event(), itertools.count()

        def crash():
            # Long enough for a step or two of the protocol between two deaths.
            for _ in range(8):
                if ended.wait(0.3):
                    return
                broker.restart_killed()
                next(crashes)

        nemesis = threading.Thread(target=crash)
        nemesis.start()
        try:
            campaign.run()
        finally:
            ended.set()
            nemesis.join()
        assert next(crashes) > 1
        check_exactly(broker.bootstrap, topic, campaign.expected)


# -- single steps -----------------------------------------------------------------------------------------------------


class Query:
    """One query by hand, step by step."""

    def __init__(self, bootstrap, **settings):
        self.client = Client(bootstrap)
        self.topic = new_topic(bootstrap, 3)
        self.names = QueryNames(str(uuid.uuid4()))
        self.settings = settings

    def driver(self, **settings):
        arguments = {"location": "file:/a", "transaction_timeout_ms": 60_000, **self.settings, **settings}
        return SinkDriver(self.client, self.names.query_id, marker=TopicPartition(self.topic, 0), **arguments)

    def task(self, prepared, batch_id, task, rows, attempt=0):
        options = SinkOptions(bootstrap=self.client.bootstrap, topic=self.topic, transaction_timeout_ms=60_000)
        batches = [pa.RecordBatch.from_arrays([pa.array([b"%d" % row for row in rows])], names=["value"])]
        return write_task(self.client, options, prepared, iter(batches), batch_id=batch_id, task=task, attempt=attempt)

    def decide_and_time_out(self, batch_id, timed_out):
        """Leave behind a decided batch of three tasks, some of whose transactions the broker aborted since."""
        driver = self.driver()
        prepared = driver.prepare()
        results = [self.task(prepared, batch_id, task, [10 * batch_id + task]) for task in range(3)]
        entries = [DecisionEntry(result.task, 0, *result.producer[1:]) for result in results]
        driver.decide(prepared.driver, Decision(batch_id, 3, "file:/a", tuple(entries)))
        for task in timed_out:  # what the broker does to a transaction whose time is up
            init_producer_id(self.client, self.names.attempt(task, 0), transaction_timeout_ms=60_000)

    def rows(self):
        return sorted(int(value) for _, _, value in read_committed(self.client.bootstrap, self.topic))


@pytest.fixture
def query(bootstrap):
    made = Query(bootstrap)
    yield made
    made.client.close()


def test_a_decided_batch_that_timed_out_whole_is_run_again(query):
    query.decide_and_time_out(0, timed_out=[0, 1, 2])
    prepared = query.driver().prepare()
    results = [query.task(prepared, 0, task, [task]) for task in range(3)]
    assert not any(result.replayed for result in results)
    query.driver().commit(results, 0, tasks=3)
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
        query.driver().commit(results, 0, tasks=3)
    assert [result.replayed for result in results] == [True, True, True]
    assert query.rows() == [0, 1, 2]
    query.decide_and_time_out(1, timed_out=[0, 2])
    prepared = query.driver().prepare()
    results = [query.task(prepared, 1, task, [10 + task]) for task in range(3)]
    assert [result.replayed for result in results] == [False, True, False]
    with pytest.raises(SinkError, match="batch 1 had 3 tasks when a part of it was committed and has 4 now"):
        query.driver().commit(results, 1, tasks=4)
    query.driver().commit(results, 1, tasks=3)
    assert query.rows() == [0, 1, 2, 10, 11, 12]


def test_an_older_driver_decides_nothing(query):
    old = query.driver().prepare()
    result = query.task(old, 0, 0, [1])
    new = query.driver().prepare()
    with pytest.raises(SinkError, match="was ended before its batch was decided"):
        query.driver().commit([result], 0, tasks=1)
    with pytest.raises(NewerDriver):
        query.driver().decide(old.driver, Decision(0, 1, "file:/a", ()))
    with pytest.raises(NewerDriver):
        query.task(old, 0, 1, [2])
    # Its abort leaves the newer one alone.
    fresh = query.task(new, 0, 0, [1])
    query.driver().abort([result, None], 0)
    query.driver().commit([fresh], 0, tasks=1)
    assert query.rows() == [1]


def test_abort_ends_what_the_tasks_left_open_and_what_never_spoke(query):
    prepared = query.driver().prepare()
    done, silent = query.task(prepared, 0, 0, [1]), query.task(prepared, 0, 1, [2])
    assert silent.producer is not None
    query.driver().abort([done, None], 0)
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
        query.driver().abort(outdated, 0)
    results = [query.task(new, batch_id, task, [task]) for task in range(2)]
    if moment == "written":
        query.driver().abort(outdated, 0)
    if moment in ("decided", "half ended"):
        entries = [DecisionEntry(result.task, 0, *result.producer[1:]) for result in results]
        driver.decide(new.driver, Decision(batch_id, 2, "file:/a", tuple(entries)))
        if moment == "half ended":
            driver.end_all(entries[:1])
        query.driver().abort(outdated, 0)
        assert driver.end_all(entries) == []
    else:
        driver.commit(results, batch_id, tasks=2)
    assert query.rows() == [0, 1]


@pytest.mark.parametrize("ending", ["abort", "commit"])
@pytest.mark.parametrize("step", ["read_decision", "sweep", "_silent_attempts", "_fence"])
def test_a_newer_driver_that_begins_in_the_middle_of_the_end_of_an_older_one(query, monkeypatch, ending, step):
    old, older = query.driver().prepare(), query.driver()
    results = [query.task(old, 0, task, [task]) for task in range(2)]
    query.task(old, 0, 0, [0], attempt=1)  # a loser for the sweep
    plain, newer = getattr(older, step), []

    def take_over_first(*arguments, **named):
        if not newer:
            prepared = query.driver().prepare()
            # Where the older one was done deciding, the query goes on with the next batch.
            batch_id = prepared.decided_batch + 1
            newer.append((batch_id, [query.task(prepared, batch_id, task, [10 + task]) for task in range(2)]))
        return plain(*arguments, **named)

    monkeypatch.setattr(older, step, take_over_first)
    older.abort([results[0], None], 0) if ending == "abort" else older.commit(results, 0, tasks=2)
    if newer:
        batch_id, results = newer[0]
        query.driver().commit(results, batch_id, tasks=2)
        assert query.rows() == ([10, 11] if ending == "abort" else [0, 1, 10, 11])
    else:
        assert (ending, step) in (("commit", "read_decision"), ("commit", "_silent_attempts"))


def test_a_transaction_that_was_ended_from_outside_is_not_decided_about(query, monkeypatch):
    """Its rows are gone, and the marker began another one with the same epoch."""

    def end_first(client, producer, *arguments):
        end_transaction(client, producer, commit=False)
        commit_offset(client, producer, *arguments)

    prepared = query.driver().prepare()
    monkeypatch.setattr("exacta.spark.task.commit_offset", end_first)
    result = query.task(prepared, 0, 0, [1])
    with pytest.raises(SinkError, match="was ended before its batch was decided"):
        query.driver().commit([result], 0, tasks=1)
    monkeypatch.undo()
    query.driver().abort([result], 0)
    query.driver().commit([query.task(query.driver().prepare(), 0, 0, [1])], 0, tasks=1)
    assert query.rows() == [1]


def test_a_task_that_an_abort_has_missed_opens_nothing(query, monkeypatch):
    prepared = query.driver().prepare()
    spoken = query.task(prepared, 0, 1, [1])

    def abort_first(client, transactional_id, **settings):
        query.driver().abort([None, spoken], 0)
        return init_producer_id(client, transactional_id, **settings)

    monkeypatch.setattr("exacta.spark.task.init_producer_id", abort_first)
    with pytest.raises(NewerDriver):
        query.task(prepared, 0, 0, [0])
    assert held_back(query.client.bootstrap, query.topic) == {}


def test_abort_leaves_a_decided_batch_alone(query):
    driver = query.driver()
    prepared = driver.prepare()
    result = query.task(prepared, 0, 0, [1])
    loser = query.task(prepared, 0, 1, [2])
    driver.decide(prepared.driver, Decision(0, 2, "file:/a", (DecisionEntry(0, 0, *result.producer[1:]),)))
    query.driver().abort([result, loser], 0)
    assert query.driver().prepare().decided_batch == 0
    assert query.rows() == [1]


def test_a_decision_about_hundreds_of_tasks(query):
    prepared = query.driver().prepare()
    results = [query.task(prepared, 0, task, [task]) for task in range(250)]
    driver = query.driver()
    driver.end_all = lambda entries: pytest.fail("killed here")
    with pytest.raises(pytest.fail.Exception):
        driver.commit(results, 0, tasks=250)
    assert query.driver().prepare().decided_batch == 0
    assert query.rows() == list(range(250))


def test_tasks_without_rows_and_batches_without_any(query):
    prepared = query.driver().prepare()
    assert query.task(prepared, 0, 0, []).producer is None
    query.driver().commit([query.task(prepared, 0, 0, []), query.task(prepared, 0, 1, [1])], 0, tasks=2)
    assert query.rows() == [1]
    query.driver().commit([query.task(query.driver().prepare(), 1, 0, [])], 1, tasks=1)
    assert query.driver().prepare().decided_batch == 0


def test_a_checkpoint_that_went_back_in_time_is_refused(query):
    for batch_id in range(2):
        prepared = query.driver().prepare()
        query.driver().commit([query.task(prepared, batch_id, 0, [batch_id])], batch_id, tasks=1)
    with pytest.raises(SinkError, match="it repeats batch 0, but batch 1 of this query is committed"):
        query.task(query.driver().prepare(), 0, 0, [0])


def test_a_copy_is_found_out_before_it_fences_the_original(query):
    prepared = query.driver().prepare()
    query.driver().commit([query.task(prepared, 0, 0, [0])], 0, tasks=1)
    running = query.driver().prepare()
    with pytest.raises(CopiedCheckpoint, match="'file:/b' is a copy"):
        query.driver(location="file:/b").prepare()
    query.driver().commit([query.task(running, 1, 0, [1])], 1, tasks=1)
    assert query.rows() == [0, 1]
    assert query.driver(location="file:/b", checkpoint_moved=True).prepare().decided_batch == 1


def test_a_time_out_that_the_broker_does_not_allow_is_explained(query):
    options = SinkOptions(bootstrap=query.client.bootstrap, topic=query.topic, transaction_timeout_ms=2_000_000_000)
    batch = pa.RecordBatch.from_arrays([pa.array([b"x"])], names=["value"])
    with pytest.raises(SinkError, match=r"lower option 'kafka\.transaction\.timeout\.ms'"):
        write_task(query.client, options, query.driver().prepare(), iter([batch]), batch_id=0, task=0, attempt=0)
