"""Topics that are deleted and created again, old checkpoints, and offsets told to a consumer group."""

import logging

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from exacta.client import fetcher
from exacta.client.errors import KafkaError
from exacta.client.group_offsets import commit_offsets
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark.source import consumer_group as group_module
from exacta.spark.source import subscription
from exacta.spark.source.planning import DataLost, topic_ids_in
from tests.spark.clusters import make_anew, new_topic
from tests.spark.readers import offsets_of, produced, reader_of, rows_between


@pytest.fixture
def prompt(monkeypatch):
    monkeypatch.setattr(subscription, "_AGE_S", 0.0)
    monkeypatch.setattr(fetcher, "_OUTDATED_FOR_MS", 100.0)


def test_a_topic_made_anew_is_told_from_the_old_one_even_when_longer(bootstrap, prompt):
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 2)
    strict, tolerant = (reader_of(bootstrap, subscribe=topic, failOnDataLoss=fail) for fail in ("true", "false"))
    first = strict.latestOffset(strict.initialOffset(), ReadAllAvailable())
    assert list(topic_ids_in(first)) == [topic]
    make_anew(bootstrap, topic)
    produced(bootstrap, topic, 5)
    with pytest.raises(DataLost, match=f"topic '{topic}' was deleted and created again since .* set option"):
        strict.latestOffset(first, ReadAllAvailable())
    again = tolerant.latestOffset(first, ReadAllAvailable())
    assert offsets_of(again) == {topic: {"0": 5}}
    assert topic_ids_in(again) != topic_ids_in(first)
    assert [row["offset"] for row in rows_between(tolerant, first, again)] == [0, 1, 2, 3, 4]
    assert tolerant.latestOffset(again, ReadAllAvailable()) == again


def test_a_topic_made_anew_with_as_many_rows_is_read_too(bootstrap, prompt):
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 2)
    tolerant = reader_of(bootstrap, subscribe=topic, failOnDataLoss="false")
    first = tolerant.latestOffset(tolerant.initialOffset(), ReadAllAvailable())
    make_anew(bootstrap, topic)
    produced(bootstrap, topic, 2)
    again = tolerant.latestOffset(first, ReadAllAvailable())
    assert offsets_of(again) == offsets_of(first) == {topic: {"0": 2}}
    assert again != first
    assert len(rows_between(tolerant, first, again)) == 2


def test_a_topic_that_was_moved_with_its_offsets_goes_on(bootstrap, prompt):
    """A mirror that keeps offsets moves a topic so: another cluster, another id, the same records."""
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 2)
    strict = reader_of(bootstrap, subscribe=topic)
    first = strict.latestOffset(strict.initialOffset(), ReadAllAvailable())
    make_anew(bootstrap, topic)
    produced(bootstrap, topic, 4)
    with pytest.raises(DataLost, match=r"or option 'check\.topic\.ids' to false where it was moved"):
        strict.latestOffset(first, ReadAllAvailable())
    moved = reader_of(bootstrap, subscribe=topic, check__topic__ids="false")
    end = moved.latestOffset(first, ReadAllAvailable())
    assert topic_ids_in(end) != topic_ids_in(first)
    for reader in (moved, strict):  # also if the batch is replayed without the option
        assert [row["offset"] for row in rows_between(reader, first, end)] == [2, 3]
    assert strict.latestOffset(end, ReadAllAvailable()) == end
    # A batch that was planned before the move.
    planned = {**offsets_of(end), **{name: {} for name in first if "#" in name}}
    assert [row["offset"] for row in rows_between(moved, first, planned)] == [2, 3]
    with pytest.raises(DataLost):
        rows_between(strict, first, planned)


def test_a_topic_made_anew_between_planning_and_reading(bootstrap, prompt):
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 2)
    strict, tolerant = (reader_of(bootstrap, subscribe=topic, failOnDataLoss=fail) for fail in ("true", "false"))
    start = strict.initialOffset()
    end = strict.latestOffset(start, ReadAllAvailable())
    make_anew(bootstrap, topic)
    produced(bootstrap, topic, 5)
    with pytest.raises(DataLost, match=f"topic '{topic}' was deleted and created again while offsets 0 to 2 of its"):
        rows_between(strict, start, end)
    assert rows_between(tolerant, start, end) == []


def test_a_checkpoint_without_ids_goes_on(bootstrap, prompt):
    """Such a checkpoint is of an older version, or of Spark's own connector."""
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 3)
    reader = reader_of(bootstrap, subscribe=topic)
    old = {topic: {"0": 3}}
    # Another text would be new data to Spark, of which there is none.
    assert reader.latestOffset(old, ReadAllAvailable()) is old
    old = {topic: {"0": 1}}
    end = reader.latestOffset(old, ReadAllAvailable())
    assert topic_ids_in(end)
    assert [row["offset"] for row in rows_between(reader, old, end)] == [1, 2]
    # A batch that the older version had planned.
    assert [row["offset"] for row in rows_between(reader, old, {topic: {"0": 2}})] == [1]


# --- the group --------------------------------------------------------------------------------------------------------


def committed(bootstrap, group, topic):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        return consumer.committed([TopicPartition(topic, 0)], 30)[0].offset
    finally:
        consumer.close()


def test_finished_batches_are_told_to_a_group(bootstrap):
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 3)
    reader = reader_of(bootstrap, subscribe=topic, maxOffsetsPerTrigger="2", commit__group__id=topic)
    limit = reader.getDefaultReadLimit()
    start = reader.initialOffset()
    first = reader.latestOffset(start, limit)
    assert committed(bootstrap, topic, topic) == 0
    second = reader.latestOffset(first, limit)
    assert committed(bootstrap, topic, topic) == 2
    reader.commit(first)
    # Behind the last batch Spark never commits, but asks.
    assert reader.latestOffset(second, limit) == second
    assert committed(bootstrap, topic, topic) == 3
    reader.stop()


def test_a_group_that_refuses_harms_nothing_and_is_tried_again(bootstrap, monkeypatch, caplog):
    topic = new_topic(bootstrap, 1)
    produced(bootstrap, topic, 2)
    reader = reader_of(bootstrap, subscribe=topic, maxOffsetsPerTrigger="1", commit__group__id=topic)
    limit = reader.getDefaultReadLimit()
    commit = commit_offsets
    attempts = []

    def refuse(client, group, offsets, *, deadline):
        attempts.append(group)
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"committing offsets to group '{group}'")

    monkeypatch.setattr(group_module, "commit_offsets", refuse)
    caplog.set_level(logging.WARNING, "exacta.spark")
    position = reader.initialOffset()
    for _ in range(3):
        position = reader.latestOffset(position, limit)
    # No batch waits for what has just failed.
    assert attempts == [topic]
    monkeypatch.setattr(group_module, "_PAUSE_S", 0.0)
    assert reader._group is not None
    reader._group._not_before_s = 0.0
    reader.latestOffset(position, limit)
    assert attempts == [topic] * 2
    assert [record.message[:75] for record in caplog.records] == [
        "the offsets of finished batches could not be committed to group '" + topic[:10]
    ]
    monkeypatch.setattr(group_module, "commit_offsets", commit)
    reader.stop()
    assert committed(bootstrap, topic, topic) == 2
    assert "are committed to group" in caplog.records[-1].message
