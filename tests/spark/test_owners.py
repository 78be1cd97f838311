"""An operator sees which query the transactions and groups of a Spark query belong to."""

import pytest
from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.client.transactions import CommittedOffset, TopicPartition, commit_offset, end_transaction, init_producer_id
from exacta.spark.owners import owners_of_groups, owners_of_transactions

NAMED = {"query_name": "clicks by hour", "application": "clickstream"}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "checkpoint"


def run(query, *arguments):
    done = CliRunner().invoke(app, [*arguments, "--bootstrap-server", query.client.bootstrap])
    assert done.exit_code == 0
    return done


def test_an_open_transaction_of_a_query_is_shown_with_the_query(query, place):
    query.settings.update(NAMED)
    name = query.names.name
    prepared = query.noted(place, 0).prepare()
    query.task(prepared, 0, 0, [0])
    of_query = f"  of Spark query 'clicks by hour' ({name}), application 'clickstream', checkpoint file:{place}, "
    shown = run(query, "transactions", "list").stdout.splitlines()
    (at,) = [index for index, line in enumerate(shown) if line.startswith(f"{name}-0-0: open for")]
    assert shown[at + 1] == f"{of_query}no batch committed yet"
    query.noted(place, 0).abort([None], driver=prepared.driver)
    query.write(query.noted(place, 0), 0, [0])
    prepared = query.noted(place, 1).prepare()
    query.task(prepared, 1, 0, [1])
    shown = run(query, "transactions", "explain", f"{name}-0-0").stdout.splitlines()
    assert shown[1] == f"{of_query}last committed batch 0"
    query.noted(place, 1).abort([None], driver=prepared.driver)


def test_groups_with_replay_markers_are_not_listed_unless_asked_for(query, place):
    query.settings.update(NAMED)
    name = query.names.name
    query.write(query.noted(place, 0), 0, [0])
    # One that only looks like such a group.
    mine, at = f"{query.topic}-7", TopicPartition(query.topic, 0)
    producer = init_producer_id(query.client, f"{query.topic}-x", transaction_timeout_ms=60_000)
    for group in (mine, f"{query.topic}-manifest"):
        commit_offset(query.client, producer, group, at, CommittedOffset(3, "not ours"))
    end_transaction(query.client, producer, commit=True)
    done = run(query, "groups", "list")
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    assert mine in listed
    assert not any(group.startswith(name) for group in listed)
    assert "groups with replay markers of Spark queries are not shown: " in done.stderr
    lines = run(query, "groups", "list", "--all").stdout.splitlines()
    of_query = {line.split()[0]: line for line in lines if "Spark query 'clicks by hour'" in line}
    assert {f"{name}-0", f"{name}-manifest"} <= set(of_query)
    assert mine not in of_query


def test_only_what_has_a_record_is_a_query(query, place):
    query.write(query.noted(place, 0), 0, [0])
    name = query.names.name
    ids = [f"{name}-driver", f"{name}-0-0", f"{name}-0", "orders-1-1", "orders-driver", "orders"]
    assert set(owners_of_transactions(query.client, ids)) == {f"{name}-driver", f"{name}-0-0"}
    groups = [f"{name}-0", f"{name}-manifest", f"{name}-manifest-1", name, "orders-1", "orders-manifest"]
    assert set(owners_of_groups(query.client, groups)) == {f"{name}-0", f"{name}-manifest", f"{name}-manifest-1"}


def test_a_group_with_replay_markers_is_neither_moved_nor_deleted(query, place):
    query.settings.update(NAMED)
    group = f"{query.names.name}-0"
    query.write(query.noted(place, 0), 0, [0])
    for command in (["delete", group, "--yes"], ["reset", group, "--to", "earliest", "--yes"]):
        refused = CliRunner().invoke(app, ["groups", *command, "--bootstrap-server", query.client.bootstrap])
        assert refused.exit_code == 1
        assert refused.stderr.startswith(f"exacta: group {group} holds replay markers of Spark query 'clicks by hour'")
