"""`exacta topics` and `exacta config`, on a broker."""

import json
import re
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.client.routing import Client

ROOT = Path(__file__).parents[2]


def a_name(topic):
    return f"{topic}-new"


def test_a_topic_lives_from_its_creation_to_its_deletion(run, topic):
    name = a_name(topic)
    made = run("topics", "create", name, "-p", "3", "--replication-factor", "1", "--set", "retention.ms=60000")
    assert made == f"topic {name} is created: 3 partitions, replication factor 1\n"
    assert {"topic": name, "partitions": 3, "replication_factor": 1} in run.found("topics", "list")
    assert run.refused("topics", "create", name) == f"topic {name} exists already"
    assert run("topics", "create", name, "--if-not-exists") == f"topic {name} exists already\n"
    (found,) = run.found("topics", "describe", name)
    assert found["settings"] == {"retention.ms": "60000"}
    assert [each["partition"] for each in found["partitions"]] == [0, 1, 2]
    assert re.fullmatch(r"[\w-]{22}", found["topic_id"])
    run("topics", "alter", name, "--partitions", "4", "--unset", "retention.ms", "--set", "max.message.bytes=2000")
    (found,) = run.found("topics", "describe", name)
    assert (len(found["partitions"]), found["settings"]) == (4, {"max.message.bytes": "2000"})
    assert run("topics", "delete", name, typed="n\n", code=1).startswith(f"Delete {name} (4 partitions) with all")
    assert run("topics", "delete", name, "--yes") == f"topic {name} is deleted\n"
    assert run.refused("topics", "delete", name, "--yes").startswith(f"there is no topic {name}; did you mean {topic}")
    assert run("topics", "delete", name, "--yes", "--if-exists") == "none of the topics is there\n"


def test_a_change_that_is_refused_in_part_is_not_made(run, topic):
    for options in (("--set", "retention.ms=5", "-p", "1"), ("--set", "retention.ms=x", "-p", "9")):
        run.refused("topics", "alter", topic, *options)
    (found,) = run.found("topics", "describe", topic)
    assert (len(found["partitions"]), found["settings"]) == (2, {})


def test_a_dry_run_changes_nothing(run, topic):
    name = a_name(topic)
    assert run("topics", "create", name, "-p", "2", "--dry-run").startswith(f"topic {name} could be created")
    assert name not in run("topics", "list")
    assert run("topics", "alter", topic, "-p", "9", "--dry-run") == f"topic {topic} could be changed\n"
    run("config", "set", "topic", topic, "retention.ms=1", "--dry-run")
    (found,) = run.found("topics", "describe", topic)
    assert (len(found["partitions"]), found["settings"]) == (2, {})


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["topics", "create", "TOPIC-new", "--set", "retention.mss=1"], 1, "INVALID_CONFIG .*retention.mss"),
        (["topics", "create", "a b"], 1, "INVALID_TOPIC_EXCEPTION .*letters and digits of ASCII"),
        (["produce", "a b"], 1, "INVALID_TOPIC_EXCEPTION .*letters and digits of ASCII"),
        (["topics", "create", "TOPIC-new", "--replication-factor", "3"], 1, "accept.any.replication.factor=true"),
        (["topics", "trim", "TOPIC", "--before", "1"], 2, "an offset belongs to one partition: give -p, too"),
        (["topics", "trim", "TOPIC", "--before", "x"], 2, "--before: 'x' is none of"),
        (
            ["topics", "trim", "TOPIC", "--before", "1", "-p", "0", "--yes"],
            1,
            "has no records up to offset 1: it ends at 0",
        ),
        (["topics", "trim", "TOPIC", "--before", "1", "-p", "7"], 1, "has no partition 7: it has 2"),
        (["topics", "trim", "no-such", "--before", "latest"], 1, "there is no topic no-such"),
        (["topics", "alter", "TOPIC", "-p", "1"], 1, "INVALID_PARTITIONS"),
        (["topics", "create", "t", "--set", "retention.ms"], 2, "--set: 'retention.ms' is not KEY=VALUE"),
        (["topics", "alter", "TOPIC"], 2, "give --partitions, --set or --unset"),
        (["topics", "describe", "no-such"], 1, "there is no topic no-such"),
        (["config", "describe", "topic", "no-such"], 1, "there is no topic no-such"),
        (["config", "set", "topic", "TOPIC", "retention.ms=long"], 1, "INVALID_CONFIG .*retention.ms"),
        (["config", "set", "topic", "TOPIC", "=1"], 2, "KEY=VALUE: '=1' is not KEY=VALUE"),
        (["config", "describe", "broker", "me"], 2, "'me' is no id of a broker"),
        (["config", "describe", "broker", "77"], 1, "broker 77 has left the cluster"),
    ],
)
def test_what_is_refused_is_told_in_one_line(run, topic, arguments, code, why):
    named = [each.replace("TOPIC", topic) for each in arguments]
    assert re.search(why, run.refused(*named, code=code))


def test_settings_are_chosen_shown_and_given_back(run, topic):
    of_topic = lambda: [  # noqa: E731  # Apache Kafka 4 has one of its own for all topics
        each for each in run.found("config", "describe", "topic", topic) if each["from"] == "topic"
    ]
    assert of_topic() == []
    run("config", "set", "topic", topic, "retention.ms=1000", "cleanup.policy=compact")
    chosen = {"from": "topic", "read_only": False}
    assert of_topic() == [
        {"setting": "cleanup.policy", "value": "compact", **chosen},
        {"setting": "retention.ms", "value": "1000", **chosen},
    ]
    refused = run.refused("config", "set", "topic", topic, "retention.ms=2000", "no.such=1")
    assert "no.such" in refused
    everything = {each["setting"]: each for each in run.found("config", "describe", "topic", topic, "--all")}
    assert (everything["retention.ms"]["value"], everything["max.message.bytes"]["from"]) == ("1000", "default")
    run("config", "unset", "topic", topic, "retention.ms", "cleanup.policy")
    assert of_topic() == []


def test_a_broker_tells_its_settings(run):
    with Client(run.bootstrap) as client:
        broker = str(client.nodes()[0])
    told = run.found("config", "describe", "broker", broker, "--all")
    assert "num.partitions" in {each["setting"] for each in told}


def test_options_of_the_broker_are_set_shown_and_given_back_while_it_runs(run):
    with Client(run.bootstrap) as client:
        broker = str(client.nodes()[0])
    set_here = lambda name: [  # noqa: E731
        (each["value"], each["from"], each["read_only"])
        for each in run.found("config", "describe", "broker", name)
        if each["setting"] == "log.retention.ms"
    ]
    assert (
        run("config", "set", "broker", "default", "log.retention.ms=700000000")
        == "all brokers have log.retention.ms=700000000\n"
    )
    assert set_here("default") == [("700000000", "all brokers, dynamic", False)]
    run("config", "set", "broker", broker, "log.retention.ms=800000000")
    assert set_here(broker) == [("800000000", "broker, dynamic", False)]
    run("config", "unset", "broker", broker, "log.retention.ms")
    assert set_here(broker) == [("700000000", "all brokers, dynamic", False)]
    run("config", "unset", "broker", "default", "log.retention.ms")
    assert set_here("default") == set_here(broker) == []
    assert "node.id" in run.refused("config", "set", "broker", broker, "node.id=77")


def test_an_open_transaction_shows_in_the_offsets_of_a_topic(run, topic):
    producer = Producer({"bootstrap.servers": run.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=1)
    assert producer.flush(30) == 0
    (found,) = run.found("topics", "describe", topic)
    first, second = found["partitions"]
    assert (first["first_offset"], first["last_stable_offset"], first["end_offset"]) == (0, 0, 0)
    (listed,) = (each for each in run.found("transactions", "list") if each["transactional_id"] == topic)
    (written,) = listed["partitions"]
    assert (written["topic"], written["partition"]) == (topic, 1)
    assert written["first_offset"] in (0, None), "an Apache Kafka does not tell it here"
    assert (listed["is_open"], run.found("transactions", "explain", topic)["state"]) == (True, "Ongoing")
    assert (second["first_offset"], second["last_stable_offset"], second["end_offset"]) == (0, 0, 1)
    assert f"{'0':>18}  {'1':>10}" in run("topics", "describe", topic).splitlines()[-1]
    producer.abort_transaction(30)
    del producer  # before its broker: librdkafka prints an error when it loses one


def test_a_topic_is_trimmed(run, topic):
    run("produce", topic, "-p", "0", typed="1\n2\n3\n")
    shown, said = run.both("topics", "trim", topic, "--before", "-1", "--dry-run", "--output", "json")
    assert json.loads(shown) == [{"partition": 0, "from": 0, "to": 2}]
    assert said == "exacta: nothing was deleted\n"
    assert run("consume", topic, "-e") == "1\n2\n3\n"
    assert (
        "Delete these records" in run.both("topics", "trim", topic, "--before", "1", "-p", "0", typed="n\n", code=1)[1]
    )
    run("topics", "trim", topic, "--before", "1", "-p", "0", "--yes")
    assert run("consume", topic, "-e") == "2\n3\n"
    run("topics", "trim", topic, "--before", "latest", "--yes")
    assert run("consume", topic, "-e") == ""
    assert run("topics", "trim", topic, "--before", "latest", "--yes") == f"topic {topic} has nothing below that\n"


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("unit", "packaging/systemd/exacta.service"),
        ("sysusers", "packaging/systemd/exacta.sysusers.conf"),
        ("example", "packaging/exacta.toml"),
        ("alerts", "monitoring/alerts.yml"),
        ("dashboard", "monitoring/grafana-dashboard.json"),
    ],
)
def test_the_files_for_running_a_server_are_printed(command, file):
    done = CliRunner().invoke(app, ["config", command])
    assert (done.exit_code, done.stdout) == (0, (ROOT / file).read_text())
