"""`exacta transactions` shows and ends transactions, on a cluster of Apache Kafka as far as Kafka tells."""

import pytest
from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.client.ask import answers
from exacta.client.errors import KafkaError
from exacta.client.explanations import explain
from exacta.client.handles import handle_named
from exacta.client.producer import IdempotentProducer
from exacta.client.topics import LATEST, list_offsets
from exacta.client.transactions import (
    CommittedOffset,
    Producer,
    TopicPartition,
    commit_offset,
    end_transaction,
    init_producer_id,
)
from exacta.core.ids import Cause
from exacta.core.transactions.description import CAUSES
from tests.client.appending import append
from tests.spark.clusters import new_topic


@pytest.fixture
def on_exacta(client):
    return answers(client)


def test_every_reason_has_its_words():
    words = {
        Cause.OWNER: "its own producer",
        Cause.NEW_INSTANCE: "new instance",
        Cause.TIME_OUT: "time-out",
        Cause.MARKER: "marker",
        Cause.SET: "set",
        Cause.IDLE: "idle",
        Cause.LOSS: "lost writes",
        Cause.OTHER_SIDE: "TxnID",
    }
    assert CAUSES.keys() == set(Cause) == words.keys()
    assert all(word in CAUSES[cause] for cause, word in words.items())


def opened(client, topic) -> Producer:
    """A transaction that has written to partition 1."""
    producer = init_producer_id(client, topic, transaction_timeout_ms=60_000)
    writer = IdempotentProducer(client, producer)
    append(writer, TopicPartition(topic, 1), 1, b"held", key=b"k")
    writer.flush()
    writer.close()
    return producer


def run(bootstrap, *arguments, answer=""):
    command = ["transactions", *arguments, "--bootstrap-server", bootstrap]
    return CliRunner().invoke(app, command, input=answer)


def test_an_open_transaction_is_seen(client, bootstrap, topic, on_exacta):
    producer = opened(client, topic)
    commit_offset(client, producer, f"{topic}-group", TopicPartition(topic, 0), CommittedOffset(5, ""))
    (found,) = explain(client, [topic])
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.producer_epoch)
    assert found.is_open
    assert found.start_ms is not None
    assert found.deadline_ms == found.start_ms + 60_000
    held = {each.partition: each.first_offset for each in found.partitions}
    assert held[1] == (0 if on_exacta else None)
    assert found in explain(client)

    shown = run(bootstrap, "list").stdout
    assert f"{topic}: open for" in shown
    if on_exacta:
        assert f"holds readers back: {topic}-1 at 0" in shown
        assert f"offsets of: {topic}-group" in shown
        assert "at 127.0.0.1" in shown
    end_transaction(client, producer, commit=True)
    assert not any(each.transactional_id == topic for each in explain(client))
    assert topic not in run(bootstrap, "list").stdout


def test_what_is_staged_is_told_and_holds_nobody_back(client, bootstrap, on_exacta):
    if not on_exacta:
        pytest.skip("sidecar topics are Exacta's")
    topic = new_topic(bootstrap, transaction_buffer="sidecar")
    producer = opened(client, topic)
    at = TopicPartition(topic, 1)
    (found,) = explain(client, [topic])
    ((place, records, size, first_offset),) = [
        (each.partition, each.staged_records, each.staged_bytes, each.first_offset) for each in found.partitions
    ]
    assert (place, records, first_offset) == (1, 1, None)
    assert 0 < size < 200
    for command in (["list"], ["explain", topic]):
        shown = run(bootstrap, *command).stdout.partition(f"{topic}: open for")[2]
        assert f"  staged: {topic}-1, 1 record of {size} bytes\n" in shown
        assert f"{topic}-1 at" not in shown
        assert "registered" not in shown
    assert list_offsets(client, [at], LATEST) == {at: 0}
    end_transaction(client, producer, commit=True)
    assert list_offsets(client, [at], LATEST) == {at: 1}
    assert explain(client, [topic])[0].partitions == ()


def test_a_fencing_is_explained(client, bootstrap, topic, on_exacta):
    opened(client, topic)
    init_producer_id(client, topic, transaction_timeout_ms=60_000)
    explained = run(bootstrap, "explain", topic)
    assert explained.exit_code == 0
    assert explained.stdout.startswith(f"{topic}: ")
    if on_exacta:
        assert "aborted: producer" in explained.stdout
        assert (
            "a new instance initialised the transactional id (client 'exacta-spark' at 127.0.0.1)" in explained.stdout
        )
    else:
        assert "does not say why" in explained.stdout


def test_a_transaction_in_the_way_is_aborted(client, bootstrap, topic):
    producer = opened(client, topic)
    assert run(bootstrap, "abort", topic, answer="n\n").exit_code == 1
    assert explain(client, [topic])[0].is_open
    aborted = run(bootstrap, "abort", topic, "--yes")
    assert aborted.exit_code == 0, aborted.output
    assert f"the transaction of {topic} is aborted" in aborted.stdout
    with pytest.raises(KafkaError) as refused:
        end_transaction(client, producer, commit=True)
    assert refused.value.fenced


@pytest.mark.parametrize("command", ["explain", "abort"])
def test_an_unknown_id_is_one_line(client, bootstrap, topic, command):
    init_producer_id(client, topic, transaction_timeout_ms=60_000)
    unknown = run(bootstrap, command, f"{topic}s")
    assert unknown.exit_code == 1
    assert unknown.stderr.startswith(f"exacta: nothing is known of transactional id {topic}s; did you mean ")
    assert topic in unknown.stderr.partition("did you mean")[2]
    assert unknown.stderr.count("\n") == 1


def test_a_cluster_that_cannot_be_named_is_a_wrong_call(tmp_path):
    wrong = run("nowhere", "list")
    assert (wrong.exit_code, wrong.stderr) == (2, "exacta: --bootstrap-server: 'nowhere' is not host:port\n")
    missing = CliRunner().invoke(
        app, ["transactions", "list", "--bootstrap-servers", "h:1", "--command-config", str(tmp_path / "none")]
    )
    assert missing.exit_code == 2
    assert missing.stderr.startswith("exacta: ")


@pytest.mark.parametrize(
    ("name", "handle"),
    [
        *[(name, 17) for name in ("TxnID(0,17)", "(0,17)", "{0 17}")],
        *[
            (name, None)
            for name in ("17", "0,17", "(1,17)", "(0,017)", "(0 17)", "{0,17}", "(0,17}", "TxnID{0 17}", "x")
        ],
    ],
)
def test_a_handle_has_the_names_that_clients_of_pulsar_print(name, handle):
    assert handle_named(name) == handle
