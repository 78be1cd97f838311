"""A broker that dies between its answer to EndTxn and the markers: nothing waits for ever, nothing is lost.

On Apache Kafka without replicas such a broker may lose the markers (`exacta.client.lost_markers`), and does nearly
always where it dies at once, as here. Run with EXACTA_TEST_BROKER=kafka to see it; the rules are the same everywhere.
"""

from contextlib import suppress

import pytest

from exacta.client.transactions import end_transactions, list_transactions
from exacta.spark.cleaning import clean
from exacta.spark.sink import lost_markers
from exacta.spark.sink.decision import Decision, DecisionEntry
from tests.conformance.brokers import broker_process
from tests.spark.by_hand import Query

pytestmark = pytest.mark.timeout(180)

TASKS = 3


@pytest.fixture
def broker(tmp_path):
    with broker_process(tmp_path) as started:
        yield started


@pytest.fixture
def query(broker):
    made = Query(broker.bootstrap)
    with made.client:
        yield made


class DriverDied(Exception):
    """The driver is killed here."""


def dies(*_, **__):
    raise DriverDied


def decided(query, driver, batch_id, **settings):
    """Write a batch up to its decision; return what Spark would know of it."""
    prepared = driver.prepare()
    results = [
        query.task(prepared, batch_id, task, [10 * batch_id + task], partition=task, **settings)
        for task in range(TASKS)
    ]
    own = [result for result in results if not result.shared]
    entries = tuple(DecisionEntry(result.task, 0, *result.producer[1:]) for result in own)
    shared = frozenset(at for result in results if result.shared for at in result.partitions)
    driver.cluster.decide(prepared.driver, Decision(batch_id, TASKS, "Q", "file:/a", "these", entries), shared)
    return prepared, results


def rows_of(*batches):
    return sorted(10 * batch_id + task for batch_id in batches for task in range(TASKS))


def check_goes_on(query):
    """Prepare as the next life would, find batch 0 committed, and write two more."""
    for batch_id in (1, 2):
        driver = query.driver()
        prepared = driver.prepare()
        assert (prepared.decided_batch, prepared.committed_tasks) == (batch_id - 1, None)
        results = [
            query.task(prepared, batch_id, task, [10 * batch_id + task], partition=task) for task in range(TASKS)
        ]
        driver.commit(results, batch_id, tasks=TASKS, reads="these")
    assert query.rows() == rows_of(0, 1, 2)


def test_the_decision(broker, query):
    decided(query, query.driver(), 0)
    broker.restart_killed()
    check_goes_on(query)


def test_the_decision_with_the_rows_in_its_transaction(broker, query):
    decided(query, query.driver(), 0, transaction_scope="batch")
    broker.restart_killed()
    assert query.driver().prepare().decided_batch == 0
    assert query.rows() == rows_of(0)
    check_goes_on(query)


def test_the_tasks_transactions(broker, query):
    _, results = decided(query, query.driver(), 0)
    end_transactions(query.client, [result.producer for result in results], commit=True)
    broker.restart_killed()
    check_goes_on(query)


def test_a_driver_that_is_told_to_abort_what_it_decided(broker, query):
    driver = query.driver()
    prepared, results = decided(query, driver, 0)
    broker.restart_killed()
    driver.abort(results, driver=prepared.driver)
    check_goes_on(query)


@pytest.mark.sweep
@pytest.mark.parametrize("step", ["write_lost_markers", "list_transactions", "end_transaction"])
def test_a_driver_that_dies_in_the_middle_of_the_repair(broker, query, monkeypatch, step):
    decided(query, query.driver(), 0)
    broker.restart_killed()
    monkeypatch.setattr(lost_markers, step, dies)
    with suppress(DriverDied):  # where something is pending
        query.driver().prepare()
    monkeypatch.undo()
    check_goes_on(query)


def test_a_driver_that_died_in_its_decision(broker, query):
    """The record is pending, and its transaction open: nobody decided."""
    driver = query.driver()
    prepared = driver.prepare()
    result = query.task(prepared, 0, 0, [999])
    entries = (DecisionEntry(0, 0, *result.producer[1:]),)
    driver.cluster.put_decision(prepared.driver, Decision(0, 1, "Q", "file:/a", "these", entries))
    end_transactions(query.client, [prepared.driver], commit=False)
    broker.restart_killed()
    assert query.driver().prepare().decided_batch == -1
    assert query.rows() == []


def test_what_is_cleaned_is_completed_first(broker, query):
    decided(query, query.driver(), 0)
    broker.restart_killed()
    assert clean(query.client, query.names.name).last_batch == 0
    assert query.rows() == rows_of(0)


def test_what_is_cleaned_is_completed_also_where_the_broker_lists_nothing_yet(broker, query, monkeypatch):
    decided(query, query.driver(), 0)
    broker.restart_killed()
    first: list[list[str]] = [[]]

    def listed(*given, **named):
        return first.pop() if first else list_transactions(*given, **named)

    monkeypatch.setattr(lost_markers, "list_transactions", listed)
    assert clean(query.client, query.names.name).last_batch == 0
    assert query.rows() == rows_of(0)
