"""An older copy of a checkpoint whose records the cluster has forgotten, beside a job that has only rested."""

import json
import logging
import shutil

import pytest

from exacta.client.errors import KafkaError
from exacta.client.group_administration import delete_group
from exacta.client.transactions import init_producer_id
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark.sink.errors import OlderCheckpoint
from exacta.spark.sink.whole_batch import write_alone
from tests.spark.by_hand import Query
from tests.spark.sink.test_whole_batch import table


@pytest.fixture
def place(tmp_path):
    return tmp_path / "checkpoint"


@pytest.fixture
def note(place):
    return place / "exacta" / "sink.json"


def forget(query, *, markers=True):
    """Delete what the cluster remembers of the query, as its expiry would."""
    groups = [query.names.decision_group(0), *(query.names.marker_group(task) for task in range(2) if markers)]
    for group in groups:
        delete_group(query.client, group)


def take_ids_over(query):
    """Leave nothing that a coordinator tells of the attempts' last transactions."""
    for task in range(2):
        init_producer_id(query.client, query.names.attempt(task, 0), transaction_timeout_ms=60_000)


def by_tasks(query, driver, batch_id, rows, **settings):
    prepared = driver.prepare()
    results = [
        query.task(prepared, batch_id, task, rows, partition=task, **settings) for task in range(2 if rows else 1)
    ]
    driver.commit(results, batch_id, tasks=2, reads=f"batch {batch_id}")


def shared(query, driver, batch_id, rows):
    by_tasks(query, driver, batch_id, rows, transaction_scope="batch")


def alone(query, driver, batch_id, rows):
    prepared = driver.prepare()
    batches = [table(rows)] if rows else []
    write_alone(query.client, query.options(), driver, prepared, batches, batch_id=batch_id, reads=f"batch {batch_id}")


WAYS = [by_tasks, shared, alone]


@pytest.fixture
def older(query, place):
    """Write six batches in one way, and put the checkpoint back to where it was after the third, without rows."""

    def restored(way):
        for batch_id in range(6):
            if batch_id == 3:
                shutil.copytree(place, place.parent / "copy")
            way(query, query.noted(place, batch_id), batch_id, [] if batch_id == 2 else [batch_id])
        shutil.rmtree(place)
        shutil.move(place.parent / "copy", place)

    return restored


@pytest.mark.parametrize("way", WAYS)
def test_an_older_copy_is_refused_by_the_rows_that_were_written_since(query, place, older, way):
    older(way)
    forget(query)
    take_ids_over(query)
    with pytest.raises(OlderCheckpoint, match=r"its note ends with batch 2, and partition topic-.* has rows at offset"):
        query.noted(place, 3).prepare()


def test_or_by_a_transaction_that_was_committed_since(query, place, older):
    older(by_tasks)
    forget(query)
    with pytest.raises(OlderCheckpoint, match=r"transactional id '.*-0-0' has committed a transaction since"):
        query.noted(place, 3).prepare()


def test_or_by_a_marker_that_is_still_there(query, place, older, note):
    """It needs nothing of the note, so it serves notes of older versions as well."""
    older(by_tasks)
    forget(query, markers=False)
    found = json.loads(note.read_text())
    del found["wrote"]
    note.write_text(json.dumps(found))
    with pytest.raises(OlderCheckpoint, match="says that rows of batch 5 are committed"):
        query.noted(place, 3).prepare()


@pytest.mark.parametrize("way", WAYS)
def test_a_job_that_rested_goes_on(query, place, caplog, way):
    for batch_id, rows in enumerate(([0], [1], [])):
        way(query, query.noted(place, batch_id), batch_id, rows)
        forget(query)
    way(query, query.noted(place, 3), 3, [3])
    assert set(query.rows()) == {0, 1, 3}
    assert [text for text in caplog.messages if "unknown producers" in text] == []


@pytest.mark.usefixtures("one_by_one")
def test_also_where_its_last_batch_was_rolled_forward(query, place, monkeypatch):
    by_tasks(query, query.noted(place, 0), 0, [0])
    driver = query.noted(place, 1)
    monkeypatch.setattr(driver.cluster, "end_decided", lambda *_: pytest.fail("killed here"))
    with pytest.raises(pytest.fail.Exception):
        by_tasks(query, driver, 1, [1])
    assert query.noted(place, 1).prepare().decided_batch == 1
    forget(query)
    by_tasks(query, query.noted(place, 2), 2, [2])
    assert query.rows() == [0, 0, 1, 1, 2, 2]


def test_also_where_a_batch_failed_before_it_rested(query, place):
    """The rows of that batch have a newer epoch than the note's, and are aborted."""
    by_tasks(query, query.noted(place, 0), 0, [0])
    for _ in range(2):
        driver = query.noted(place, 1)
        prepared = driver.prepare()
        driver.abort([query.task(prepared, 1, task, [1], partition=task) for task in range(2)])
    forget(query)
    by_tasks(query, query.noted(place, 1), 1, [1])
    assert query.rows() == [0, 0, 1, 1]


def test_also_beside_others_in_its_topic_of_whom_nobody_knows(query, place, caplog):
    """Their rows may be its own under newer producer ids: a line of the log says so."""
    by_tasks(query, query.noted(place, 0), 0, [0])
    forget(query)
    other = Query(query.client.bootstrap)
    other.topic = query.topic
    other.write(other.driver(), 0, [7])
    other.client.close()
    caplog.set_level(logging.WARNING, "exacta.spark")
    by_tasks(query, query.noted(place, 1), 1, [1])
    (told,) = [text for text in caplog.messages if "unknown producers" in text]
    assert f"to {query.topic}-" in told
    assert query.rows() == [0, 0, 1, 1, 7]


def test_also_on_another_cluster_whose_producer_ids_are_others(query, place, note, older):
    older(by_tasks)
    forget(query)
    found = json.loads(note.read_text())
    found["wrote"]["cluster"] = "another"
    note.write_text(json.dumps(found))
    assert query.noted(place, 3).prepare().decided_batch == -1


def test_also_where_nothing_may_be_looked_up(query, place, older, monkeypatch, caplog):
    older(by_tasks)
    forget(query)

    def refused(*_):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "listing the groups")

    monkeypatch.setattr("exacta.spark.sink.later_writes.list_groups", refused)
    assert query.noted(place, 3).prepare().decided_batch == -1
    assert "could not be looked up: listing the groups" in caplog.text


def test_a_topic_that_is_gone_shows_nothing_and_hides_no_other(query, place, note, older):
    older(alone)
    forget(query)
    found = json.loads(note.read_text())
    found["wrote"]["topics"] = ["gone", query.topic]
    note.write_text(json.dumps(found))
    with pytest.raises(OlderCheckpoint):
        query.noted(place, 3).prepare()


def test_the_note_names_the_last_transactions(query, place, note):
    by_tasks(query, query.noted(place, 0), 0, [0])
    found = json.loads(note.read_text())["wrote"]
    assert found["cluster"] == query.client.cluster_id
    assert found["topics"] == [query.topic]
    assert sorted(found["producers"]) == [*(query.names.attempt(task, 0) for task in range(2)), query.names.driver]
