"""Removing what a query has left: decided, undecided, torn, running; and the command that does it."""

from typing import Any

import pytest
from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.client.group_administration import delete_group
from exacta.client.transactions import init_producer_id
from exacta.spark import cleaning
from exacta.spark.cleaning import Cleaned, StillRunning, clean, find, watch
from exacta.spark.sink.decision import Decision, DecisionEntry
from exacta.spark.sink.errors import NewerDriver
from exacta.spark.sink.names import QueryNames
from tests.spark.by_hand import Query
from tests.spark.clusters import held_back


def commit(query, batch_id):
    prepared = query.driver().prepare()
    results = [query.task(prepared, batch_id, task, [10 * batch_id + task]) for task in range(2)]
    query.driver().commit(results, batch_id, tasks=2, reads="these")


def decide_and_die(query, batch_id):
    """Leave behind a batch that is decided and not ended."""
    prepared = query.driver().prepare()
    results = [query.task(prepared, batch_id, task, [10 * batch_id + task]) for task in range(2)]
    entries = tuple(DecisionEntry(result.task, 0, *result.producer[1:]) for result in results)
    query.driver().cluster.decide(prepared.driver, Decision(batch_id, 2, "Q", "file:/a", "these", entries))


def groups(query):
    names = query.names
    return (names.decision_group(0), names.marker_group(0), names.marker_group(1))


def check_nothing_left(query):
    left = find(query.client, query.names.name)
    assert left.groups == ()
    assert left.open_transactions == []
    assert left.nothing
    assert held_back(query.client.bootstrap, query.topic) == {}


def test_of_a_query_that_never_was_there_is_nothing(query):
    found = watch(query.client, "nobody", 60, pause=lambda _: pytest.fail("there is nothing to look at"))
    assert found.nothing
    assert found.transactions == {}


def test_what_a_query_left_that_ended_well(query):
    for batch_id in range(2):
        commit(query, batch_id)
    found = find(query.client, query.names.name)
    assert sorted(found.groups) == sorted(groups(query))
    assert set(found.transactions) == {query.names.driver, query.names.attempt(0, 0), query.names.attempt(1, 0)}
    assert found.open_transactions == []
    assert not found.nothing
    assert clean(query.client, query.names.name) == Cleaned(last_batch=1, torn=False, groups=groups(query))
    check_nothing_left(query)
    assert query.rows() == [0, 1, 10, 11]
    assert clean(query.client, query.names.name) == Cleaned(last_batch=None, torn=False, groups=())


def test_a_batch_that_was_decided_is_committed(query):
    commit(query, 0)
    decide_and_die(query, 1)
    assert len(find(query.client, query.names.name).open_transactions) == 2
    assert clean(query.client, query.names.name) == Cleaned(last_batch=1, torn=False, groups=groups(query))
    check_nothing_left(query)
    assert query.rows() == [0, 1, 10, 11]


def test_a_batch_that_was_not_decided_is_aborted_and_its_driver_fenced(query):
    prepared = query.driver().prepare()
    results = [query.task(prepared, 0, task, [task]) for task in range(2)]
    query.driver().cluster.put_decision(prepared.driver, Decision(0, 2, "Q", "file:/a", "these", ()))
    assert clean(query.client, query.names.name).last_batch is None
    check_nothing_left(query)
    assert query.rows() == []
    with pytest.raises(NewerDriver):
        query.driver().cluster.decide(prepared.driver, Decision(0, 2, "Q", "file:/a", "these", ()))
    assert all(result.producer is not None for result in results)


def test_a_batch_that_is_torn_is_told_of(query):
    query.decide_and_time_out(0, timed_out=[1])
    cleaned = clean(query.client, query.names.name)
    assert (cleaned.last_batch, cleaned.torn) == (0, True)
    check_nothing_left(query)
    assert query.rows() == [0, 2]


def test_a_batch_that_timed_out_whole_was_none(query):
    query.decide_and_time_out(0, timed_out=[0, 1, 2])
    cleaned = clean(query.client, query.names.name)
    assert (cleaned.last_batch, cleaned.torn) == (None, False)
    check_nothing_left(query)


def test_a_cleaning_that_was_cut_short_is_begun_again(query, monkeypatch):
    decide_and_die(query, 0)
    deleted: list[Any] = []

    def delete_one(client, group, deadline):
        if deleted:
            raise KeyboardInterrupt
        deleted.append(group)
        return delete_group(client, group)

    monkeypatch.setattr(cleaning, "delete_group", delete_one)
    with pytest.raises(KeyboardInterrupt):
        clean(query.client, query.names.name)
    monkeypatch.undo()
    assert deleted == [query.names.decision_group(0)]
    assert clean(query.client, query.names.name) == Cleaned(last_batch=None, torn=False, groups=groups(query)[1:])
    check_nothing_left(query)
    assert query.rows() == [0, 1]


def test_a_query_of_a_longer_name_is_left_alone(query):
    commit(query, 0)
    other = Query(query.client.bootstrap)
    other.names = QueryNames(f"{query.names.name}-1")
    commit(other, 0)
    clean(query.client, query.names.name)
    assert sorted(find(other.client, other.names.name).groups) == sorted(groups(other))
    assert other.driver().prepare().decided_batch == 0
    other.client.close()


def test_a_query_that_moves_is_running(query):
    commit(query, 0)
    pauses: list[float] = []
    assert not watch(query.client, query.names.name, 2, pause=pauses.append).nothing
    assert sum(pauses) == 2

    def begin_a_batch(_):
        if len(pauses) == 6:
            query.driver().prepare()
        pauses.append(0)

    with pytest.raises(StillRunning, match="is running"):
        watch(query.client, query.names.name, 2, pause=begin_a_batch)


# --- the command ------------------------------------------------------------------------------------------------------


def run(query, *arguments, answer=None):
    command = ["spark", "clean", "--bootstrap-servers", query.client.bootstrap, "--watch", "0", *arguments]
    return CliRunner().invoke(app, command, input=answer)


def test_the_command_shows_asks_and_cleans(query, tmp_path):
    decide_and_die(query, 0)
    name = query.names.name
    refused = run(query, "--query", name, answer="n\n")
    assert refused.exit_code == 1
    assert f"group {name}-manifest" in refused.stdout
    assert f"transactional id {name}-0-0 (Ongoing)" in refused.stdout
    assert len(find(query.client, name).open_transactions) == 2, "it has not been touched"
    (tmp_path / "metadata").write_text(f'{{"id":"{name}"}}')
    done = run(query, "--checkpoint", str(tmp_path), answer="y\n")
    assert (done.exit_code, done.stderr) == (0, "")
    assert f"query {name} is removed: batch 0 was the last, nothing is open, 3 groups deleted" in done.stdout
    check_nothing_left(query)
    again = run(query, "--prefix", name, "--yes")
    assert (again.exit_code, again.stdout) == (
        0,
        f"nothing of query {name} is there but 3 transactional ids, which expire\n",
    )


def test_the_command_cleans_further_sinks_of_a_query_but_no_other_job(query):
    name = query.names.name
    sink = Query(query.client.bootstrap)
    sink.names = QueryNames(f"{name}.second")
    commit(query, 0)
    decide_and_die(sink, 0)
    by_name = run(query, "--prefix", name, answer="n\n")
    assert by_name.stdout.startswith(f"not looked at: {name}.second; ")
    assert not find(sink.client, f"{name}.second").nothing
    done = run(query, "--query", name, "--yes")
    assert done.exit_code == 0
    assert f"query {name}.second is removed: batch 0 was the last" in done.stdout
    check_nothing_left(query)
    check_nothing_left(sink)
    assert sink.rows() == [0, 1]
    sink.client.close()


def test_a_job_that_died_is_found_by_its_prefix(query):
    """And only that: neither one that ended, nor a query whose name merely begins so."""
    died, ended, other = Query(query.client.bootstrap), Query(query.client.bootstrap), Query(query.client.bootstrap)
    died.names, ended.names = QueryNames(query.names.job()), QueryNames(query.names.job())
    other.names = QueryNames(f"{query.names.name}-other")
    decide_and_die(died, 0)
    commit(ended, 0)
    clean(ended.client, ended.names.name)
    commit(other, 0)
    assert cleaning.jobs(query.client, query.names.name) == [died.names.name]
    done = run(query, "--prefix", query.names.name, "--yes")
    assert done.exit_code == 0
    assert f"query {died.names.name} is removed: batch 0 was the last" in done.stdout
    assert (ended.names.name in done.stdout, other.names.name in done.stdout) == (False, False)
    check_nothing_left(died)
    assert not find(other.client, other.names.name).nothing
    for each in (died, ended, other):
        each.client.close()


def test_where_there_is_nothing_the_command_says_how_else_to_ask(query):
    done = run(query, "--query", "nobody")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "nothing of query nobody is there",
        "a query that sets option 'transactional.id.prefix' is found by --prefix",
    ]
    assert run(query, "--prefix", "nobody").stdout == "nothing of query nobody is there\n"


@pytest.mark.parametrize(
    ("config", "code", "message"),
    [
        ("# how to connect\nsecurity.protocol=PLAINTEXT\nkafka.request.timeout.ms = 5000\n", 0, None),
        (
            "linger.ms=5\nrequest.timeout.mss=5",
            0,
            "FILE: 'request.timeout.mss' does not say how to connect, and is passed over; did you mean "
            "request.timeout.ms?",
        ),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n",
            2,
            "'security.protocol' of --config SASL_SSL needs",
        ),
        (None, 2, "'"),
    ],
)
def test_how_the_command_connects(query, tmp_path, config, code, message):
    file = tmp_path / "client.properties"
    if config is not None:
        file.write_text(config)
    done = run(query, "--query", "nobody", "--command-config", str(file))
    assert done.exit_code == code
    if message is not None:
        assert done.stderr.startswith(f"exacta: {message.replace('FILE', str(file))}")
        assert done.stderr.count("\n") == 1


def test_the_command_tells_of_a_torn_batch(query):
    query.decide_and_time_out(0, timed_out=[1])
    done = run(query, "--query", query.names.name, "--yes")
    assert done.exit_code == 0
    assert done.stderr == "exacta: of batch 0 only a part is there: the other transactions of it had timed out\n"


def test_the_command_refuses_a_query_that_runs(query, monkeypatch):
    def begins_a_batch(client, name, seconds):
        def begin(_):
            init_producer_id(client, query.names.driver, transaction_timeout_ms=60_000)

        return watch(client, name, seconds, pause=begin)

    commit(query, 0)
    monkeypatch.setattr(cleaning, "watch", begins_a_batch)
    refused = run(query, "--query", query.names.name, "--yes")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"exacta: query {query.names.name} is running")
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give one of --query, --checkpoint and --prefix"),
        (["--query", "a", "--prefix", "b"], 2, "give one of --query, --checkpoint and --prefix"),
        (["--query", " "], 2, "the name of a query is not empty"),
        (["--checkpoint", "/nowhere"], 1, "the query's id could not be read from the checkpoint at '/nowhere'"),
        (["--query", "a", "--bootstrap-servers", "nonsense"], 2, "--bootstrap-server: 'nonsense' is not host"),
        (["--query", "a", "--bootstrap-servers", "127.0.0.1:1"], 1, "gave up after"),
    ],
)
def test_wrong_calls_are_one_line(query, monkeypatch, arguments, code, message):
    monkeypatch.setattr("exacta.cli.cluster._CALL_TIMEOUT_MS", 200)
    refused = run(query, *arguments)
    assert refused.exit_code == code
    assert refused.stderr.startswith(f"exacta: {message}")
    assert refused.stderr.count("\n") == 1
