"""`exacta groups lag` tells the lag of a group, on a cluster of Apache Kafka as far as Kafka tells."""

import pytest
from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.client.group_offsets import commit_offsets
from exacta.client.lag import describe_lag
from exacta.client.producer import IdempotentProducer
from exacta.client.transactions import Producer, TopicPartition, end_transaction, init_producer_id
from tests.client.appending import append
from tests.client.test_explanations import opened


def write(client, producer: Producer, partition: TopicPartition, count: int) -> None:
    writer = IdempotentProducer(client, producer)
    for _ in range(count):
        append(writer, partition, 1, b"v", key=b"k")
    writer.flush()
    writer.close()


@pytest.fixture
def group(client, topic):
    """A group that has read one of two committed records of partition 0, and is behind an open transaction in 1."""
    partition = TopicPartition(topic, 0)
    producer = init_producer_id(client, f"{topic}-committed", transaction_timeout_ms=60_000)
    write(client, producer, partition, 2)
    end_transaction(client, producer, commit=True)
    open_one = opened(client, topic)
    commit_offsets(client, f"{topic}-g", {partition: 1, TopicPartition(topic, 1): 0})
    yield f"{topic}-g"
    end_transaction(client, open_one, commit=False)


def run(bootstrap, group, option="--bootstrap-server"):
    return CliRunner().invoke(app, ["groups", "lag", group, option, bootstrap])


def test_records_are_counted_and_the_holder_is_named(client, topic, group):
    found = describe_lag(client, group)
    first, second = found.partitions
    assert (first.committed_offset, first.last_stable_offset, first.high_watermark) == (1, 3, 3)
    assert (second.unread, second.held_back, second.last_stable_offset) == (0, 1, 0)
    if found.exact:
        assert first.unread == 1, "the marker is none"
        assert [holder.transactional_id for holder in second.held_by] == [topic]
    else:
        assert first.unread == 2, "at most"


def test_it_is_shown(client, bootstrap, topic, group):
    for option in ("--bootstrap-server", "--bootstrap-servers"):
        shown = run(bootstrap, group, option)
        assert shown.exit_code == 0, shown.output
        assert f"{topic}-0" in shown.stdout
    if describe_lag(client, group).exact:
        assert f"{topic}, for" in shown.stdout
        assert shown.stderr == ""
    else:
        assert "is not an Exacta" in shown.stderr
        assert shown.stderr.count("\n") == 1


def test_a_group_that_nobody_knows_is_one_line_with_those_that_were_meant(bootstrap, topic, group):
    unknown = run(bootstrap, f"{group}roup")
    assert (unknown.exit_code, unknown.stderr.count("\n")) == (1, 1)
    assert unknown.stderr.startswith(f"exacta: there is no group {group}roup; did you mean ")
    assert group in unknown.stderr.partition("did you mean")[2]
    assert run(bootstrap, "nope").stderr == "exacta: there is no group nope\n"
