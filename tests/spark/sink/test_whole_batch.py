"""Micro-batches that the driver writes alone, and their replays by either way, with a stand-in for Spark."""

from collections import Counter

import pyarrow as pa
import pytest

from exacta.client.transactions import end_transaction, init_producer_id
from exacta.spark.sink import protocol
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.whole_batch import is_committed, write_alone
from tests.spark.by_hand import Query
from tests.spark.clusters import check_exactly, held_back, new_topic, read_committed
from tests.spark.standin import Campaign, Crash

ALONE_POINTS = (
    "before preparing",
    "after preparing",
    "after all tasks",
    "decision not ended",
    "after the decision",
    "before a sweep",
    "after commit",
)


class EitherWay(Campaign):
    """A query whose batches, and whose replays of them, are written by the driver alone or by tasks, as chance has it.

    In a life in which the driver writes alone, "after all tasks" is when its rows are written and nothing is decided.
    """

    alone_chance = 0.5

    def _batch(self, batch_id):
        if self._random.random() >= self.alone_chance:
            super()._batch(batch_id)
            return
        self._crash_at = self._random.choice(self.points) if self._random.random() < self.crash_chance else None
        self._reached("before preparing")
        driver = self._driver()
        prepared = driver.prepare()
        self._reached("after preparing")
        reads = f"batch {batch_id}"
        batch = {"batch_id": batch_id, "reads": reads}
        if is_committed(self._client, self._options, driver, prepared, **batch):
            return
        first = batch_id * self.rows_per_batch
        rows = [str(row) for row in range(first, first + self.rows_per_batch)]
        try:
            write_alone(self._client, self._options, driver, prepared, [table(rows)], **batch)
        except Exception:  # noqa: BLE001 - as Spark: whatever it is, the query ends
            raise Crash from None


def table(rows):
    values = pa.array([str(row) for row in rows])
    return pa.RecordBatch.from_arrays([values, values], names=["key", "value"])


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(10))
def test_every_row_once_whichever_way_a_batch_and_its_replay_go(bootstrap, seed):
    topic = new_topic(bootstrap)
    campaign = EitherWay(bootstrap, topic, seed=seed, batches=20)
    campaign.run()
    assert sum(campaign.crashes.values()) > 0
    check_exactly(bootstrap, topic, campaign.expected)


@pytest.mark.sweep
@pytest.mark.parametrize("point", ALONE_POINTS)
def test_every_row_once_where_the_driver_dies_at_one_point_again_and_again(bootstrap, point):
    topic = new_topic(bootstrap)
    campaign = EitherWay(bootstrap, topic, seed=1, batches=8, points=(point,))
    campaign.alone_chance = 0.8
    campaign.run()
    assert campaign.crashes[point] > 0
    check_exactly(bootstrap, topic, campaign.expected)


def test_the_campaign_finds_a_planted_fault(bootstrap, monkeypatch):
    monkeypatch.setattr("exacta.spark.sink.task._is_committed", lambda *_: False)
    topic = new_topic(bootstrap)
    EitherWay(bootstrap, topic, seed=1, crash_chance=0.8).run()
    counts = Counter(int(value) for _, _, value in read_committed(bootstrap, topic))
    assert [row for row, count in counts.items() if count > 1] != []


# --- single steps -----------------------------------------------------------------------------------------------------


class EitherWayQuery(Query):
    """One query by hand, whose batches are written either way."""

    def alone(self, prepared, batch_id, rows, reads="these"):
        return write_alone(
            self.client, self.options(), self.driver(), prepared, [table(rows)], batch_id=batch_id, reads=reads
        )

    def committed(self, prepared, batch_id, reads="these"):
        return is_committed(self.client, self.options(), self.driver(), prepared, batch_id=batch_id, reads=reads)


@pytest.fixture
def query(bootstrap):
    made = EitherWayQuery(bootstrap)
    yield made
    made.client.close()


def test_alone_then_replayed_by_tasks(query):
    assert query.alone(query.driver().prepare(), 0, [0, 1, 2]) == 3
    assert held_back(query.client.bootstrap, query.topic) == {}
    decision = query.driver().cluster.decision()
    assert (decision.batch_id, decision.rows, decision.entries) == (0, 3, ())
    prepared = query.driver().prepare()
    results = [query.task(prepared, 0, task, [task]) for task in range(3)]
    assert [result.replayed for result in results] == [True] * 3
    query.driver().commit(results, 0, tasks=3, reads="these")
    assert query.rows() == [0, 1, 2]


@pytest.mark.usefixtures("one_by_one")
def test_decided_by_tasks_and_half_ended_then_replayed_alone(query, monkeypatch):
    prepared, driver = query.driver().prepare(), query.driver()
    results = [query.task(prepared, 0, task, [task]) for task in range(3)]
    monkeypatch.setattr(driver.cluster, "decide_and_end", lambda *_: False)  # as on Apache Kafka
    plain = driver.cluster.end_all
    monkeypatch.setattr(
        driver.cluster, "end_all", lambda entries: [plain(list(entries)[:1]), pytest.fail("killed here")]
    )
    with pytest.raises(pytest.fail.Exception):
        driver.commit(results, 0, tasks=3, reads="these")
    assert query.committed(query.driver().prepare(), 0)
    assert query.rows() == [0, 1, 2]


@pytest.mark.usefixtures("one_by_one")
def test_what_timed_out_in_part_is_not_for_the_driver_alone(bootstrap, monkeypatch):
    query = EitherWayQuery(bootstrap, replay_deterministic=True)
    prepared, driver = query.driver().prepare(), query.driver()
    results = [query.task(prepared, 0, task, [task]) for task in range(2)]
    monkeypatch.setattr(driver.cluster, "decide_and_end", lambda *_: False)
    monkeypatch.setattr(driver.cluster, "end_all", lambda entries: pytest.fail("killed here"))
    with pytest.raises(pytest.fail.Exception):
        driver.commit(results, 0, tasks=2, reads="these")
    init_producer_id(query.client, query.names.attempt(1, 0), transaction_timeout_ms=60_000)  # as a time-out would
    prepared = query.driver().prepare()
    assert prepared.is_committed_in_part(0)
    assert not query.committed(prepared, 0)
    results = [query.task(prepared, 0, task, [task]) for task in range(2)]
    query.driver().commit(results, 0, tasks=2, reads="these")
    assert query.rows() == [0, 1]
    query.client.close()


def test_a_replay_that_covers_something_else_is_refused(query):
    query.alone(query.driver().prepare(), 0, [0], reads="0 to 100")
    with pytest.raises(SinkError, match="batch 0 of this query is committed, but it covered other offsets"):
        query.committed(query.driver().prepare(), 0, reads="0 to 150")


def test_a_checkpoint_that_went_back_in_time_is_refused(query):
    for batch_id in range(2):
        query.alone(query.driver().prepare(), batch_id, [batch_id])
    with pytest.raises(SinkError, match="it repeats batch 0, but batch 1 of this query is committed"):
        query.committed(query.driver().prepare(), 0)


def test_an_empty_batch_decides_nothing(query):
    assert query.alone(query.driver().prepare(), 0, []) == 0
    assert query.driver().cluster.decision() is None
    assert query.alone(query.driver().prepare(), 1, [1]) == 1
    assert query.rows() == [1]


def test_an_older_driver_writes_nothing_alone(query):
    old = query.driver().prepare()
    query.driver().prepare()
    with pytest.raises(SinkError, match="was ended before its task 0 began"):
        query.alone(old, 0, [0])
    assert query.rows() == []


def test_rows_that_were_aborted_from_outside_are_not_decided_about(query, monkeypatch):
    """Their transaction is gone, and the decision record began another one with the same epoch."""
    prepared, driver = query.driver().prepare(), query.driver()
    plain = driver.cluster.records.put_decision

    def abort_first(producer, decision):
        end_transaction(query.client, producer, commit=False)
        plain(producer, decision)

    monkeypatch.setattr(driver.cluster.records, "put_decision", abort_first)
    with pytest.raises(SinkError, match="was ended before its batch was decided"):
        write_alone(query.client, query.options(), driver, prepared, [table([0])], batch_id=0, reads="these")
    assert held_back(query.client.bootstrap, query.topic) == {}
    prepared = query.driver().prepare()
    assert not query.committed(prepared, 0)
    query.alone(prepared, 0, [0])
    assert query.rows() == [0]


def test_an_error_after_the_commit_point_leaves_the_batch_committed(query, monkeypatch):
    prepared, driver = query.driver().prepare(), query.driver()
    monkeypatch.setattr(protocol, "shown_ids", lambda _: pytest.fail("right behind the decision"))
    with pytest.raises(pytest.fail.Exception):
        write_alone(query.client, query.options(), driver, prepared, [table([0])], batch_id=0, reads="these")
    assert query.committed(query.driver().prepare(), 0)
    assert query.rows() == [0]
