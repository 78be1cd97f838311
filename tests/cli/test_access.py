"""`exacta acls` and `exacta users`, on a broker with an authorizer."""

import json

import pytest

import exacta
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.values.scram import ScramMechanism
from tests.cli.conftest import Commands


@pytest.fixture(scope="module")
def broker():
    with exacta.Broker(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:ANONYMOUS") as running:
        yield running


@pytest.fixture
def run(broker):
    return Commands(broker.bootstrap_servers)


def test_rules_are_added_listed_and_removed(run):
    assert run("acls", "list") == "there are no access rules\n"
    added = run("acls", "add", "User:alice", "read", "Describe", "--topic", "orders-", "--prefixed")
    assert added == "User:alice may Read Topic orders-…\nUser:alice may Describe Topic orders-…\n"
    denied = run("acls", "add", "User:bob", "All", "--cluster", "--deny", "--host", "10.0.0.1")
    assert denied == "User:bob may not All Cluster kafka-cluster from 10.0.0.1\n"
    found = run.found("acls", "list")
    assert [(each["principal"], each["operation"], each["permission"]) for each in found] == [
        ("User:alice", "Describe", "Allow"),
        ("User:alice", "Read", "Allow"),
        ("User:bob", "All", "Deny"),
    ]
    assert len(run.found("acls", "list", "--topic", "orders-", "--prefixed")) == 2
    assert run.found("acls", "list", "--topic", "orders-") == []
    assert run("acls", "remove", "--principal", "User:alice", "--dry-run").count("\n") == 2
    assert "Delete 1 rule?" in run("acls", "remove", "--cluster", typed="n\n", code=1)
    assert len(run.found("acls", "list")) == 3
    assert run("acls", "remove", "--principal", "User:alice", "--yes").endswith("2 rules deleted\n")
    assert run("acls", "remove", "--principal", "User:alice", "--yes") == "there are no such access rules\n"
    run("acls", "remove", "--cluster", "--yes")
    assert run.found("acls", "list") == []


def test_a_rule_about_nothing_or_two_things_is_a_wrong_call(run):
    assert run.refused("acls", "add", "User:alice", "Read", code=2).startswith("give --topic")
    two = run.refused("acls", "add", "User:alice", "Read", "--topic", "t", "--group", "g", code=2)
    assert two.startswith("give only one of --topic")
    assert run.refused("acls", "remove", code=2).startswith("give --topic")
    for given, told in (
        (("user:alice", "Read", "--topic", "t"), "user:alice is nobody"),
        (("User:alice", "Read", "--topic", "t*"), "no topic is named t*: --prefixed"),
        (("User:alice", "Read", "--topic", "t", "--host", "localhost"), "--host takes an address"),
    ):
        assert run.refused("acls", "add", *given, code=2).startswith(told)
    assert "INVALID_REQUEST" in run.refused("acls", "add", "alice", "Read", "--topic", "t")


def key_of(broker, user, mechanism=ScramMechanism.SCRAM_SHA_512):
    return broker.in_engine(lambda log: log.advice.scram_key(user, mechanism))


def test_users_are_added_listed_changed_and_removed(run, broker, tmp_path, monkeypatch):
    assert run("users", "list") == "there are no users\n"
    file = tmp_path / "password"
    file.write_text("pencil\n")
    assert run("users", "add", "alice", "--password-file", str(file)) == "user alice logs in by SCRAM-SHA-512\n"
    before = key_of(broker, "alice")
    assert run.found("users", "list") == [{"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 8192}]
    assert run.refused("users", "add", "alice", "--password-file", str(file)).startswith("user alice logs in by")
    monkeypatch.setenv("PASSWORD_OF_ALICE", "pen")
    run("users", "add", "alice", "--mechanism", "scram-sha-256", "--password-env", "PASSWORD_OF_ALICE")
    out, err = run.both("users", "passwd", "alice", typed="brush\nbrush\n")
    assert out.lstrip(" \n") == "user alice has another password\n"
    assert "brush" not in out + err
    assert key_of(broker, "alice") != before
    assert len(run.found("users", "list")) == 2
    assert "Delete user alice?" in run("users", "remove", "alice", typed="n\n", code=1)
    assert run("users", "remove", "alice", "--yes") == "user alice is deleted\n"
    assert run.refused("users", "remove", "alice", "--yes") == "there is no user alice"
    assert run.refused("users", "passwd", "alice", "--password-env", "X") == "there is no user alice"
    assert json.loads(run("users", "list", "--output", "json")) == []


def test_a_password_that_is_not_there_is_a_wrong_call(run, tmp_path):
    assert run.refused("users", "add", "bob", "--password-env", "NO_SUCH_VARIABLE", code=2) == "the password is empty"
    missing = run.refused("users", "add", "bob", "--password-file", str(tmp_path / "missing"), code=2)
    assert missing.endswith("cannot be read: No such file or directory")
    (tmp_path / "empty").write_text("\n")
    assert (
        run.refused("users", "add", "bob", "--password-file", str(tmp_path / "empty"), code=2)
        == "the password is empty"
    )
    both = run.refused("users", "add", "bob", "--password-env", "X", "--password-file", "y", code=2)
    assert both.startswith("give only one of --password-file")
    assert run.found("users", "list") == []
