"""The sink's note and the cluster's records together, against a real broker, without Spark."""

import logging

import pytest

from exacta.client.group_administration import delete_group
from exacta.spark.sink.errors import ForeignRecords, IdentityChanged, RecordsForgotten, UnknownPast
from exacta.spark.sink.names import QueryNames
from tests.spark.by_hand import Query
from tests.spark.clusters import held_back


@pytest.fixture
def place(tmp_path):
    return tmp_path / "checkpoint"


def forget(query, name=None):
    """Delete what the cluster remembers of a sink, as its expiry would."""
    names = QueryNames(name or query.names.name)
    for group in (names.decision_group(0), names.marker_group(0)):
        assert delete_group(query.client, group)


def test_a_new_query_says_so_once_and_alarms_nobody(query, place, caplog):
    caplog.set_level(logging.INFO, "exacta.spark")
    query.noted(place, 0).prepare()
    (told,) = caplog.records
    assert told.levelno == logging.INFO
    assert told.message.startswith(f"the sink '{query.names.name}' begins on {query.client.bootstrap}: ")
    assert "normal for a new query" in told.message
    assert query.noted(place, 0).prepare().decided_batch == -1
    query.write(query.noted(place, 0), 0, [1])
    assert query.noted(place, 1).prepare().decided_batch == 0
    assert [record.levelno for record in caplog.records if record.levelno > logging.INFO] == []
    assert [text for text in caplog.messages if "begins on" in text] == [told.message]


def test_another_name_is_refused_and_the_running_query_is_not_harmed(query, place):
    query.write(query.noted(place, 0), 0, [0])
    running = query.noted(place, 1)
    prepared = running.prepare()
    for options in ({"name": f"pa-{query.topic}"}, {"exactly_once": False}):
        with pytest.raises(IdentityChanged):
            query.noted(place, 1, **options).prepare()
    running.commit([query.task(prepared, 1, 0, [1])], 1, tasks=1, reads="batch 1")
    assert query.rows() == [0, 1]


def test_a_batch_whose_record_was_forgotten_is_refused_and_the_next_one_is_not(query, place):
    query.write(query.noted(place, 0), 0, [0])
    forget(query)
    with pytest.raises(RecordsForgotten, match="may have committed batch 0 before"):
        query.noted(place, 0).prepare()
    # Spark had noted the batch after all: what comes now was never decided.
    assert query.noted(place, 1).prepare().decided_batch == -1
    query.write(query.noted(place, 1), 1, [1])
    assert query.rows() == [0, 1]


def test_or_it_is_adopted_and_may_be_there_twice(query, place):
    query.write(query.noted(place, 0), 0, [0])
    forget(query)
    query.write(query.noted(place, 0, adopted_batch=0), 0, [0])
    assert query.rows() == [0, 0]
    # What is left standing allows no later batch.
    query.write(query.noted(place, 1, adopted_batch=0), 1, [1])
    forget(query)
    with pytest.raises(RecordsForgotten):
        query.noted(place, 1, adopted_batch=0).prepare()


def test_a_checkpoint_in_the_middle_of_its_life_is_refused_once(query, place):
    with pytest.raises(UnknownPast, match="has come to batch 7 without this sink"):
        query.noted(place, 7).prepare()
    query.write(query.noted(place, 7, adopted_batch=7), 7, [7])
    query.write(query.noted(place, 8), 8, [8])
    assert query.rows() == [7, 8]


def test_what_an_older_version_has_committed_is_gone_on_with(query, place):
    """It kept no note."""
    older = query.driver(query_id=query.names.name, location=f"file:{place}")
    query.write(older, 3, [3])
    assert query.noted(place, 3).prepare().decided_batch == 3
    assert (place / "exacta" / "sink.json").exists()
    query.write(query.noted(place, 4), 4, [4])
    forget(query)
    with pytest.raises(RecordsForgotten):
        query.noted(place, 4).prepare()


@pytest.mark.usefixtures("way")
def test_killed_while_it_begins(query, place, monkeypatch):
    """The sink is killed with the first record on its way, and with the record there and no note yet."""
    driver = query.noted(place, 0)
    monkeypatch.setattr("exacta.spark.sink.cluster.end_transaction", lambda *_, **__: pytest.fail("killed here"))
    with pytest.raises(pytest.fail.Exception):
        driver.prepare()
    monkeypatch.undo()
    driver = query.noted(place, 0)
    monkeypatch.setattr(driver._notes, "keep", lambda: pytest.fail("killed here"))
    with pytest.raises(pytest.fail.Exception):
        driver.prepare()
    assert not (place / "exacta").exists()
    query.write(query.noted(place, 0), 0, [0])
    assert held_back(query.client.bootstrap, query.topic) == {}
    assert query.rows() == [0]


def test_a_named_job_that_has_decided_nothing_may_begin_anew(query, place, tmp_path):
    """Its first checkpoint was deleted after a failure in the first batch, say."""
    name = f"job-{query.topic}"
    query.noted(place, 0, name=name).prepare()
    other = Query(query.client.bootstrap)
    other.topic = query.topic
    other.write(other.noted(tmp_path / "other", 0, name=name), 0, [0])
    with pytest.raises(ForeignRecords):
        query.noted(place, 0, name=name).prepare()
    assert query.rows() == [0]
    other.client.close()
