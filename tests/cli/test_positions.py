"""The positions that `-o` takes, and the offsets that they are on a topic."""

import pytest
from confluent_kafka import Producer

from exacta.cli.positions import BEGINNING, END, NoPlace, Place, PositionKind, Range, offsets_at, range_of
from exacta.cli.times import time_in_words, time_ms
from exacta.client.routing import Client
from exacta.client.topics import READ_COMMITTED, READ_UNCOMMITTED
from exacta.client.transactions import TopicPartition

NEW_YEAR_MS = 1_767_225_600_000


@pytest.mark.parametrize(
    ("texts", "meant"),
    [
        ([], Range(BEGINNING, None)),
        (["earliest"], Range(BEGINNING, None)),
        (["end"], Range(END, None)),
        (["7"], Range(Place(PositionKind.OFFSET, 7), None)),
        (["-7"], Range(Place(PositionKind.OFFSET, -7), None)),
        (["-0"], Range(END, None)),
        (["s@5", "e@2026-01-01T00:00:00Z"], Range(Place(PositionKind.TIME, 5), Place(PositionKind.TIME, NEW_YEAR_MS))),
        (["e@6", "-3"], Range(Place(PositionKind.OFFSET, -3), Place(PositionKind.TIME, 6))),
    ],
)
def test_a_range_is_said_in_kcats_words(texts, meant):
    assert range_of(texts) == meant


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["middle"], "^'middle' is none of beginning"),
        (["--7"], "none of"),
        (["²"], "none of"),
        (["9" * 19], "none of"),
        (["s@yesterday"], "^'yesterday' is no time"),
        (["e@1", "e@2"], "second end"),
        (["1", "2"], "second start"),
    ],
)
def test_what_is_no_range_is_refused(texts, why):
    with pytest.raises(NoPlace, match=why):
        range_of(texts)


def test_a_time_is_a_number_or_a_date():
    assert time_ms("2026-01-01T00:00:00Z") == NEW_YEAR_MS
    assert time_ms("2026-01-01T01:00:00+01:00") == NEW_YEAR_MS
    assert time_ms(str(NEW_YEAR_MS)) == NEW_YEAR_MS
    assert time_ms(time_in_words(NEW_YEAR_MS)) == NEW_YEAR_MS
    assert time_ms("now") is None


def test_a_place_is_an_offset_of_each_partition(bootstrap, topic):
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(4):
        producer.produce(topic, b"x", partition=0, timestamp=NEW_YEAR_MS + number)
    producer.commit_transaction(30)  # its marker is at 4
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0, timestamp=NEW_YEAR_MS + 9)
    assert producer.flush(30) == 0
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with Client(bootstrap) as client:
        for text, isolation, offset in (
            ("beginning", READ_COMMITTED, 0),
            ("end", READ_COMMITTED, 5),
            ("end", READ_UNCOMMITTED, 6),
            ("3", READ_COMMITTED, 3),
            ("-2", READ_COMMITTED, 3),
            ("-2", READ_UNCOMMITTED, 4),
            ("-9", READ_COMMITTED, 0),
            (f"s@{NEW_YEAR_MS + 2}", READ_COMMITTED, 2),
            ("s@2100-01-01", READ_COMMITTED, 5),
        ):
            found = offsets_at(client, [full, empty], range_of([text]).start, isolation)
            assert found == {full: offset, empty: 3 if text == "3" else 0}, text
    producer.abort_transaction(30)
    del producer
