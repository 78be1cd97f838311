"""A Spark application remembers the driver that it prepared a batch with, and an abort hangs on that."""

import pytest

from exacta.client.transactions import Producer
from exacta.spark.sink import last_prepared
from tests.spark.clusters import held_back, on_marker_topics

DRIVER = Producer("q-driver", 7, 3)


@pytest.fixture
def application(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/somewhere/else")
    return tmp_path


def test_the_last_one_is_remembered_by_the_application(application, monkeypatch, tmp_path_factory):
    assert last_prepared.recall("q") is None
    last_prepared.remember("q", DRIVER._replace(producer_epoch=2))
    last_prepared.remember("q", DRIVER)
    last_prepared.remember("a/b", DRIVER._replace(producer_id=8))
    assert last_prepared.recall("q") == DRIVER
    assert last_prepared.recall("a/b") == DRIVER._replace(producer_id=8)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path_factory.mktemp("another")))
    assert last_prepared.recall("q") is None


def test_without_a_directory_nothing_is_remembered_and_nothing_fails(application, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(application / "gone"))
    last_prepared.remember("q", DRIVER)
    assert last_prepared.recall("q") is None
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    last_prepared.remember("q", DRIVER)
    assert last_prepared.recall("q") is None


def test_what_cannot_be_read_is_nothing(application):
    last_prepared.remember("q", DRIVER)
    (file,) = application.iterdir()
    file.write_text("{")
    assert last_prepared.recall("q") is None


@on_marker_topics
def test_an_abort_that_no_task_has_told_anything_ends_its_own_batch_only(query):
    """The incarnation that the batch was prepared with tells a zombie from the driver that has the query."""
    old = query.driver().prepare()
    query.task(old, 0, 0, [0])
    new = query.driver().prepare()
    results = [query.task(new, 0, task, [task]) for task in range(2)]
    query.driver().abort([None, None], driver=old.driver)
    query.driver().commit(results, 0, tasks=2, reads="these")
    last = query.driver().prepare()
    for task in range(2):
        query.task(last, 1, task, [10 + task])
    assert held_back(query.client.bootstrap, query.topic) != {}
    query.driver().abort([None, None], driver=last.driver)
    assert held_back(query.client.bootstrap, query.topic) == {}
    assert query.rows() == [0, 1]
