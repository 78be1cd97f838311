"""`exacta cluster`: brokers, health, versions, and waiting for a cluster that is being started."""

import threading

import pytest
from typer.testing import CliRunner

import exacta
from exacta.cli.app import app
from exacta.cli.cluster_health import _problems
from exacta.client.routing import Client
from exacta.client.topic_administration import PartitionDescription, TopicDescription, add_topic
from exacta.demo.processes import free_port
from tests.conformance.brokers import ON_KAFKA
from tests.spark.clusters import ELSEWHERE


def test_brokers_and_what_they_speak_are_shown(run):
    told = run.found("cluster", "describe")
    with Client(run.bootstrap) as client:
        nodes = client.nodes()
        assert told["cluster_id"] == client.cluster_id
    assert [each["broker"] for each in told["brokers"]] == nodes
    assert told["controller"] in nodes
    assert run("cluster", "describe").startswith(f"cluster {told['cluster_id']}, controller {told['controller']}\n")
    versions = run.found("cluster", "version")
    assert [each["broker"] for each in versions] == nodes
    assert {each["exacta"] for each in versions} == {not (ON_KAFKA or ELSEWHERE)}
    assert all(each["features"]["transaction.version"] in (1, 2) and each["apis"] > 40 for each in versions)
    assert "transaction.version=" in run("cluster", "version")


def test_all_is_well(run, topic):
    assert run("cluster", "health").startswith("all is well: 1 broker, ")
    told = run.found("cluster", "health")
    assert (told["healthy"], told["problems"]) == (True, [])
    assert told["partitions"] >= 2


def test_partitions_that_are_not_well_are_found():
    well = PartitionDescription(0, 1, (1, 2), (2, 1))
    behind = PartitionDescription(1, 1, (1, 2), (1,))
    leaderless = PartitionDescription(2, None, (1, 2), (1, 2))
    found = _problems([TopicDescription("t", None, False, (well, behind, leaderless))])
    assert [(each["partition"], each["problem"]) for each in found] == [
        (1, "replicas are not in sync"),
        (2, "no leader"),
    ]


def test_a_problem_is_exit_code_1(run, monkeypatch):
    problem = {"topic": "t", "partition": 3, "problem": "no leader", "replicas": [1], "in_sync": []}
    monkeypatch.setattr("exacta.cli.cluster_health._problems", lambda topics: [problem])
    shown = run("cluster", "health", code=1).splitlines()
    assert shown[0].startswith("1 partition not well: ")
    assert shown[2].split() == ["t", "3", "no", "leader", "1"]


def test_one_waits_for_a_cluster_that_is_being_started():
    port = free_port()
    done = []
    arguments = ["cluster", "wait", "-b", f"127.0.0.1:{port}", "--topic", "t", "--timeout", "60"]
    waiting = threading.Thread(target=lambda: done.append(CliRunner().invoke(app, arguments)))
    waiting.start()
    with exacta.Broker(port=port) as broker, Client(broker.bootstrap_servers) as client:
        add_topic(client, "t")
        waiting.join(60)
    (ended,) = done
    assert (ended.exit_code, ended.stdout) == (0, f"127.0.0.1:{port} answers\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["wait", "--topic", "no-such"], "gave up after 0.3 s: topic 'no-such' does not exist"),
        (["wait", "--brokers", "99"], "gave up after 0.3 s: 1 of 99 brokers are there"),
    ],
)
def test_what_does_not_come_is_told(run, arguments, why):
    assert run.refused("cluster", *arguments, "--timeout", "0.3").startswith(why)


def test_a_cluster_that_is_not_there_is_not_well():
    refused = CliRunner().invoke(app, ["cluster", "health", "-b", f"127.0.0.1:{free_port()}", "--timeout", "0.3"])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "gave up after 0.3 s: cannot connect to" in refused.stderr
