"""Apache Kafka beside us: what it needs is said in one line, and the node is configured as meant."""

import shutil
import subprocess
from pathlib import Path

import pytest
from benchmarks.kafka import distribution
from benchmarks.kafka.cluster import Cluster
from benchmarks.kafka.node import Node
from benchmarks.kafka.security import Secured


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('java version "1.8.0_402"', 1),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_java_version(banner, version):
    assert distribution.java_version(banner) == version


def found(monkeypatch, *programs):
    monkeypatch.setattr(shutil, "which", lambda name: name if name in programs else None)


def answering(monkeypatch, **outputs):
    """Let each program print something to standard error, or fail, instead of being run."""

    def run(command, **_):
        text = outputs[command[0]]
        if isinstance(text, subprocess.CompletedProcess):
            return text
        return subprocess.CompletedProcess(command, 0, stdout="", stderr=text)

    monkeypatch.setattr(subprocess, "run", run)


def test_missing_java_and_maven_are_named(monkeypatch, tmp_path):
    found(monkeypatch)
    with pytest.raises(distribution.KafkaUnavailableError, match="needs java"):
        distribution.fetch(tmp_path)
    found(monkeypatch, "java")
    answering(monkeypatch, java='openjdk version "11.0.2"\n')
    with pytest.raises(distribution.KafkaUnavailableError, match=r"java 17 or later in PATH: found openjdk"):
        distribution.fetch(tmp_path)
    answering(monkeypatch, java='openjdk version "21.0.2"\n')
    with pytest.raises(distribution.KafkaUnavailableError, match="needs Maven"):
        distribution.fetch(tmp_path)


def test_a_failed_fetch_says_why_and_leaves_nothing(monkeypatch, tmp_path):
    found(monkeypatch, "java", "mvn")
    failed = subprocess.CompletedProcess(["mvn"], 1, stdout="[INFO] x\n[ERROR] no network\n[ERROR] more\n", stderr="")
    answering(monkeypatch, java='openjdk version "21.0.2"\n', mvn=failed)
    with pytest.raises(distribution.KafkaUnavailableError, match=r"4\.4\.0: \[ERROR\] no network$"):
        distribution.fetch(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_was_fetched_is_used_without_maven(monkeypatch, tmp_path):
    found(monkeypatch, "java")
    answering(monkeypatch, java='openjdk version "21.0.2"\n')
    (tmp_path / "kafka-4.4.0").mkdir()
    assert distribution.fetch(tmp_path) == tmp_path / "kafka-4.4.0"


def test_node_properties_end_with_the_overrides():
    node = Node(jars=Path("j"), folder=Path("f"), port=1001, controller_port=1002, overrides=["num.partitions=7"])
    lines = node.properties().splitlines()
    assert "listeners=PLAINTEXT://127.0.0.1:1001,CONTROLLER://127.0.0.1:1002" in lines
    assert lines[-1] == "num.partitions=7"
    assert not any(line.startswith("log.flush") for line in lines)
    assert node.bootstrap == "127.0.0.1:1001"


def test_a_cluster_keeps_three_replicas_and_its_nodes_share_the_controllers(tmp_path):
    cluster = Cluster(tmp_path, Path("j"), first_port=1001, overrides=["num.partitions=7"])
    assert cluster.bootstrap == "127.0.0.1:1001,127.0.0.1:1003,127.0.0.1:1005"
    voters = "controller.quorum.voters=1@127.0.0.1:1002,2@127.0.0.1:1004,3@127.0.0.1:1006"
    for index, node in cluster.nodes.items():
        lines = node.properties().splitlines()
        assert {f"node.id={index}", voters, "min.insync.replicas=2"} <= set(lines)
        assert lines.index("offsets.topic.replication.factor=3") > lines.index("offsets.topic.replication.factor=1")
        assert lines[-1] == "num.partitions=7"
        assert "-Xmx512M" in node.command()


def test_a_secured_node_has_a_listener_for_each_protocol(tmp_path):
    secured = Secured.at(tmp_path, "127.0.0.1")
    node = Node(jars=Path("j"), folder=Path("f"), port=1001, controller_port=1009, secured=secured)
    assert node.listeners == {
        "PLAINTEXT": "127.0.0.1:1001",
        "SSL": "127.0.0.1:1002",
        "SASL_PLAINTEXT": "127.0.0.1:1003",
        "SASL_SSL": "127.0.0.1:1004",
    }
    assert "SASL_SSL://127.0.0.1:1004,CONTROLLER://127.0.0.1:1009" in node.properties()
    again = Secured.at(tmp_path, "127.0.0.1")
    assert again == secured
    assert (tmp_path / "server.pem").read_text().startswith("-----BEGIN PRIVATE KEY-----")
    assert not any(path.stat().st_mode & 0o077 for path in (tmp_path / "server.pem", tmp_path / "accounts.json"))
