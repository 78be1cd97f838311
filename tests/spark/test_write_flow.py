"""The steps of `exacta.spark.write` against a real broker, with the little that it asks of Spark made by hand."""

from typing import Any

import pytest

from exacta.client.group_administration import delete_group, list_groups
from exacta.client.routing import Client
from exacta.spark import foreach_batch, write
from exacta.spark.error_sentences import ClusterError
from exacta.spark.options import OptionError
from exacta.spark.owners import owners_of_groups
from exacta.spark.sink.errors import OlderCheckpoint, SinkError
from exacta.spark.sink.protocol import SinkDriver
from exacta.spark.sink.running_query import RunningQuery
from tests.spark.clusters import check_exactly, held_back, read_committed
from tests.spark.foreach_batch_by_hand import Frame, Query, Spark, plan, restarted


def driver_rows(most: int) -> dict[str, Any]:
    """Return an option that is named beside the others; its name is no name of Python's."""
    return {"driver.rows": most}


@pytest.fixture
def spark(monkeypatch):
    return Spark(monkeypatch)


@pytest.fixture
def query(bootstrap, tmp_path):
    return Query(bootstrap, tmp_path)


def test_small_batches_by_the_driver_and_large_ones_by_tasks(spark, query):
    sizes, ways, first = [10, 60, 60, 40, 30], [], 0
    for batch_id, size in enumerate(sizes):
        plan(query, batch_id, first + size)
        frame = Frame(range(first, first + size))
        written = write(frame, batch_id, query.options, **driver_rows(50))
        assert (written.rows, written.replayed) == (size, False)
        assert written.alone == (written.tasks == 0)
        ways.append(frame.computed)
        first += size
        with Client(query.bootstrap) as client:
            group = f"{query.query_id}-manifest"
            owner = owners_of_groups(client, [group])[group]
        assert (owner.origin.application, owner.last_batch) == ("a job", batch_id)
    assert ways == [["driver"], ["driver", "tasks"], ["tasks"], ["tasks"], ["driver"]]
    check_exactly(query.bootstrap, query.topic, range(first))


@pytest.mark.parametrize(("most", "shown"), [(0, "transactional id"), (100, "partition")])
def test_an_older_copy_is_refused_where_the_cluster_has_forgotten_the_query(spark, query, monkeypatch, most, shown):
    """The note of a batch that tasks wrote names their transactions, although only their job knows them."""
    size = 10
    note = query.checkpoint / "exacta" / "sink.json"

    def write_batch(batch_id):
        plan(query, batch_id, (batch_id + 1) * size)
        rows = range(batch_id * size, (batch_id + 1) * size)
        assert write(Frame(rows), batch_id, query.options, **driver_rows(most)).rows == size

    def forget_and_restart():
        with Client(query.bootstrap) as client:
            for group in list_groups(client, f"{query.query_id}-"):
                delete_group(client, group)
        restarted(monkeypatch)

    for batch_id in range(2):
        write_batch(batch_id)
        forget_and_restart()
    older = note.read_bytes()
    write_batch(2)
    forget_and_restart()
    note.write_bytes(older)
    with pytest.raises(OlderCheckpoint, match=f"its note ends with batch 1, and {shown}"):
        write_batch(2)
    check_exactly(query.bootstrap, query.topic, range(3 * size))


@pytest.mark.parametrize("most", [0, 100])
def test_a_committed_batch_is_computed_again_but_not_written(spark, query, monkeypatch, most):
    plan(query, 0, 10)
    assert not write(Frame(range(10)), 0, query.options, **driver_rows(most)).replayed
    with pytest.raises(SinkError, match=r"option 'sink\.name'"):
        write(Frame(range(10)), 0, query.options, **driver_rows(most))
    restarted(monkeypatch)
    for other, computed in ((0, ["nobody"]), (100, ["driver"])):  # the driver has them before it knows
        frame = Frame(range(10))
        written = write(frame, 0, query.options, **driver_rows(other))
        assert (written.rows, written.replayed, written.alone, frame.computed) == (10, True, False, computed)
        restarted(monkeypatch)
    plan(query, 0, 12)
    with pytest.raises(SinkError, match="it covered other offsets"):
        write(Frame(range(12)), 0, query.options)
    check_exactly(query.bootstrap, query.topic, range(10))


@pytest.mark.parametrize(("most", "step"), [(100, "collecting"), (0, "tasks done")])
def test_a_batch_that_failed_is_written_by_the_next_call(spark, query, most, step):
    def die(where):
        if where == step:
            raise ZeroDivisionError

    plan(query, 0, 10)
    spark.dies = die
    with pytest.raises(ZeroDivisionError):
        write(Frame(range(10)), 0, query.options, **driver_rows(most))
    assert held_back(query.bootstrap, query.topic) == {}
    spark.dies = lambda where: None
    write(Frame(range(10)), 0, query.options, **driver_rows(most))
    check_exactly(query.bootstrap, query.topic, range(10))


def test_two_sinks_of_one_query(spark, query):
    plan(query, 0, 10)
    write(Frame(range(10)), 0, query.options)
    write(Frame(range(10, 20)), 0, {**query.options, "sink.name": "b"}, **driver_rows(0))
    check_exactly(query.bootstrap, query.topic, range(20))


def test_an_empty_batch(spark, query):
    for batch_id, most in enumerate([0, 100]):
        plan(query, batch_id, 0)
        written = write(Frame([]), batch_id, query.options, **driver_rows(most))
        assert (written.rows, written.replayed) == (0, False)


def test_at_least_once_asks_for_nothing(spark, query):
    frame = Frame(range(10))
    named: dict[str, Any] = {"delivery.guarantee": "at-least-once"}
    assert write(frame, 0, query.options, **named).rows is None
    assert frame.computed == ["tasks"]
    assert len(read_committed(query.bootstrap, query.topic)) == 10


def test_a_finished_batch_is_refused_before_anything_is_taken_over(spark, query):
    """The call comes as from a notebook, with the checkpoint of a query that runs."""
    plan(query, 0, 10)
    (query.checkpoint / "commits").mkdir(exist_ok=True)
    (query.checkpoint / "commits" / "0").write_text("v1")
    frame = Frame(range(10))
    with pytest.raises(SinkError, match=r"batch 0 of the query at .* is finished"):
        write(frame, 0, query.options)
    assert frame.computed == []


def test_a_copied_checkpoint_is_refused(spark, query, tmp_path_factory, monkeypatch):
    plan(query, 0, 10)
    write(Frame(range(10)), 0, query.options)
    other = tmp_path_factory.mktemp("copy")
    (other / "metadata").write_text((query.checkpoint / "metadata").read_text())
    (other / "offsets").mkdir()
    query.checkpoint = other
    plan(query, 1, 20)
    restarted(monkeypatch)
    for most in (0, 100):
        frame = Frame(range(10, 20))
        with pytest.raises(SinkError, match="is a copy"):
            write(frame, 1, {**query.options, "checkpointLocation": str(other)}, **driver_rows(most))
        assert frame.computed == (["driver"] if most else [])
        restarted(monkeypatch)
    check_exactly(query.bootstrap, query.topic, range(10))


def test_what_preparing_complains_of_is_what_the_caller_hears(spark, query, monkeypatch):
    """The caller hears it even if Spark fails beside it, and hears Spark's complaint if preparing went well."""
    plan(query, 0, 10)

    def refuse(self):
        raise SinkError("not prepared")

    def die(where):
        if where == "collecting":
            raise ZeroDivisionError

    spark.dies = die
    with pytest.raises(ZeroDivisionError):
        write(Frame(range(10)), 0, query.options, **driver_rows(100))
    monkeypatch.setattr(SinkDriver, "prepare", refuse)
    for dies in (die, lambda where: None):
        spark.dies = dies
        with pytest.raises(SinkError, match="not prepared"):
            write(Frame(range(10)), 0, query.options, **driver_rows(100))


def test_what_is_told_of_the_query_must_agree(spark, query, monkeypatch):
    plan(query, 0, 10)
    options = {name: value for name, value in query.options.items() if name != "checkpointLocation"}
    with pytest.raises(OptionError, match="set option 'checkpointLocation' to the query's"):
        write(Frame(range(10)), 0, options)
    query_id = (query.checkpoint / "metadata").read_text().split('"')[3]
    running = RunningQuery(query_id, 0, f"file:{query.checkpoint}", "run")
    monkeypatch.setattr(foreach_batch, "running_query", lambda _: running)
    with pytest.raises(OptionError, match="write was called for batch 1 while Spark runs batch 0"):
        write(Frame(range(10)), 1, options)
    monkeypatch.setattr(foreach_batch, "running_query", lambda _: running._replace(query_id="other"))
    with pytest.raises(SinkError, match="but query other is running"):
        write(Frame(range(10)), 0, query.options)
    monkeypatch.setattr(foreach_batch, "running_query", lambda _: running)
    assert write(Frame(range(10)), 0, options).rows == 10
    # The same place under another name.
    restarted(monkeypatch)
    assert write(Frame(range(10)), 0, query.options).replayed


def test_a_cluster_that_cannot_be_reached(spark, query):
    plan(query, 0, 10)
    nowhere = {**query.options, "kafka.bootstrap.servers": "127.0.0.1:1", "kafka.delivery.timeout.ms": 300}
    with pytest.raises(ClusterError, match="did not answer as it should") as raised:
        write(Frame(range(10)), 0, nowhere)
    assert raised.value.__cause__ is None
