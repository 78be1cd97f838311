"""What tools ask of a broker and a cluster: APIs, features, log folders, leaders, groups of other kinds."""

import json
import re
from pathlib import Path

from tests.tools.bench import Bench


def test_apis_and_their_versions(bench: Bench) -> None:
    head, *lines = bench.good("kafka-broker-api-versions").lines
    assert head == f"{bench.bootstrap} (id: {bench.node} rack: null isFenced: false) -> ("
    served = dict(re.findall(r"^\t(\w+)\(\d+\): (.+?),?$", "\n".join(lines), re.MULTILINE))
    for name in ("Produce", "Fetch", "AddPartitionsToTxn", "TxnOffsetCommit", "EndTxn", "DescribeTransactions"):
        assert "usable" in served[name], name


def test_features(bench: Bench) -> None:
    features = {line.split()[1]: line for line in bench.good("kafka-features", "describe").lines}
    assert re.search(r"SupportedMaxVersion: 2\s+FinalizedVersionLevel: 2", features["transaction.version"])


def test_the_cluster(bench: Bench) -> None:
    assert re.fullmatch(r"Cluster ID: \S+\n", bench.good("kafka-cluster", "cluster-id").out)
    host, port = bench.bootstrap.split(":")
    assert bench.good("kafka-cluster", "list-endpoints").rows[1] == [
        bench.node,
        host,
        port,
        "null",
        "unfenced",
        "broker",
    ]


def test_folders_of_logs(bench: Bench) -> None:
    topic = bench.topic(2)
    bench.fill(topic, 10)
    *_, text = bench.good("kafka-log-dirs", "--describe", "--topic-list", topic).lines
    (broker,) = json.loads(text)["brokers"]
    (folder,) = broker["logDirs"]
    assert (str(broker["broker"]), folder["error"]) == (bench.node, None)
    sizes = {each["partition"]: each["size"] for each in folder["partitions"]}
    assert sizes.keys() == {f"{topic}-0", f"{topic}-1"}
    assert sizes[f"{topic}-0"] > 0 == sizes[f"{topic}-1"]
    assert all((each["offsetLag"], each["isFuture"]) == (0, False) for each in folder["partitions"])
    assert topic in bench.good("kafka-log-dirs", "--describe").out


def test_leaders_are_elected_already(bench: Bench, folder: Path) -> None:
    topic = bench.topic()
    chosen = folder / "partitions.json"
    chosen.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0}]}))
    elected = [f"Valid replica already elected for partitions {topic}-0"]
    elect = ("kafka-leader-election", "--election-type")
    assert bench.good(*elect, "preferred", "--path-to-json-file", str(chosen)).lines == elected
    assert bench.good(*elect, "unclean", "--topic", topic, "--partition", "0").lines == elected
    assert bench.good(*elect, "preferred", "--all-topic-partitions").lines == []
    missing = bench.bad(*elect, "preferred", "--topic", bench.name("missing"), "--partition", "0")
    assert "UnknownTopicOrPartitionException" in missing


def test_the_clients_of_every_kind_find_what_they_need(bench: Bench) -> None:
    topic = bench.topic(3)
    supported = {
        "offsets-for-times": True,
        "cluster-id": True,
        "create-topics": True,
        "describe-acls": True,
        "describe-configs": True,
        "idempotent-producer": True,
    }
    options = [text for name, is_so in supported.items() for text in (f"--{name}-supported", str(is_so).lower())]
    more = ("--topic", topic, "--num-cluster-nodes", "1", "--expect-record-too-large-exception", "false")
    assert "SUCCESS" in bench.good("client-compatibility-test", *more, *options).out


def test_what_is_not_there(bench: Bench) -> None:
    assert "SecurityDisabledException" in bench.bad("kafka-acls", "--list")
    assert bench.good("kafka-reassign-partitions", "--list").lines == ["No partition reassignments found."]
    for tool in ("kafka-client-metrics", "kafka-share-groups", "kafka-streams-groups"):
        assert bench.good(tool, "--list").lines == [], tool
    of_metrics = ("--entity-type", "client-metrics", "--entity-name", "nobody")
    assert "doesn't have dynamic config" in bench.good("kafka-configs", "--describe", *of_metrics).out
