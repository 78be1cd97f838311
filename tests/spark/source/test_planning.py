"""A micro-batch's offsets are planned, stored, compared and cut into tasks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.client.transactions import TopicPartition
from exacta.spark.source import planning
from exacta.spark.source.planning import DataLost, Range

A, B, C = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


positions = st.fixed_dictionaries({A: st.integers(0, 1000), B: st.integers(0, 1000), C: st.integers(0, 1000)})


@given(positions, positions, st.none() | st.integers(1, 500))
def test_a_batch_stays_between_its_start_and_what_there_is(start, sizes, limit):
    available = {partition: start[partition] + size for partition, size in sizes.items()}
    end = planning.limited(start, available, limit)
    taken = {partition: end[partition] - start[partition] for partition in start}
    assert all(0 <= taken[partition] <= sizes[partition] for partition in start)
    # A partition that has something gets on, and the limit is exceeded only by that.
    assert all(taken[partition] > 0 for partition in start if sizes[partition])
    if limit is None:
        assert end == available
    else:
        assert sum(taken.values()) <= limit + len(start)
        assert sum(taken.values()) >= min(limit, sum(sizes.values())) - len(start)


@given(positions)
def test_offsets_come_back_from_json(start):
    assert planning.from_json(json.loads(json.dumps(planning.to_json(start)))) == start


def test_offsets_carry_topic_ids_where_others_pass_them_over():
    topic_id = bytes(range(240, 256))
    text = planning.id_as_text(topic_id)
    assert len(text) == 22
    assert planning.id_from_text(text) == topic_id
    assert planning.id_from_text("") is None
    stored = json.loads(json.dumps(planning.to_json({A: 5, C: 7}, {"t": text})))
    assert stored == {"t": {"0": 5}, "u": {"0": 7}, f"t#{text}": {}}
    assert planning.topic_ids_in(stored) == {"t": text}
    # As Spark's own connector, and whatever else goes by partition, reads it.
    assert {(topic, int(p)): at for topic, offsets in stored.items() for p, at in offsets.items()} == {A: 5, C: 7}
    assert planning.from_json(stored) == {A: 5, C: 7}
    # Of an older version: no ids.
    assert planning.topic_ids_in({"t": {"0": 5}}) == {}


def test_a_topic_is_replaced_where_it_has_another_id():
    assert planning.replaced({"t": "1", "u": "2", "v": "3"}, {"t": "1", "u": "4"}) == ["u"]
    assert planning.replaced({}, {"t": "1"}) == []


def sizes(parts):
    return [(part.partition, part.end - part.start) for part in parts]


def test_ranges_are_cut_as_sparks_connector_cuts_them():
    parts = [Range("t", 0, 0, 100), Range("t", 1, 50, 60), Range("t", 2, 0, 1)]
    cut = planning.sliced(parts, at_least=None, at_most_offsets=30)
    assert sizes(cut) == [(0, 25)] * 4 + [(1, 10), (2, 1)]
    # Small ones are left whole and do not count.
    cut = planning.sliced(parts, at_least=7, at_most_offsets=None)
    assert sizes(cut) == [(0, 20)] * 5 + [(1, 10), (2, 1)]
    assert sizes(planning.sliced(parts, at_least=3, at_most_offsets=None)) == sizes(parts)
    assert sizes(planning.sliced(parts, at_least=8, at_most_offsets=60))[0] == (0, 16)
    assert planning.sliced([], at_least=8, at_most_offsets=60) == []


@given(st.lists(st.integers(1, 1000), max_size=6), st.none() | st.integers(1, 40), st.none() | st.integers(1, 300))
def test_cutting_loses_and_doubles_nothing(counts, at_least, at_most):
    parts = [Range("t", index, 7, 7 + count, "id") for index, count in enumerate(counts)]
    cut = planning.sliced(parts, at_least=at_least, at_most_offsets=at_most)
    for part in parts:
        pieces = [piece for piece in cut if piece.partition == part.partition]
        assert [piece.start for piece in pieces] + [part.end] == [part.start] + [piece.end for piece in pieces]
        assert all(piece.start < piece.end and piece.topic_id == "id" for piece in pieces)
    if at_most is not None:
        assert all(piece.end - piece.start <= at_most for piece in cut)


def test_ranges_leave_out_what_is_empty_and_begin_new_partitions_where_they_begin():
    assert planning.ranges({A: 5, B: 7}, {A: 5, B: 9, C: 4}, {C: 2}) == [Range("t", 1, 7, 9), Range("u", 0, 2, 4)]


def test_what_is_gone_is_said():
    planning.check_not_behind({A: 5}, {A: 5, B: 1})
    with pytest.raises(DataLost, match="partition t-1 is gone"):
        planning.check_not_behind({B: 1}, {A: 5})
    with pytest.raises(DataLost, match="ends at offset 4, before offset 5"):
        planning.check_not_behind({A: 5}, {A: 4})


def test_a_new_partition_that_has_lost_its_beginning_is_lost_data():
    planning.check_from_the_start({A: 0, B: 0})
    with pytest.raises(DataLost, match="partition t-1 is new to the query and begins at offset 7, not at 0"):
        planning.check_from_the_start({A: 0, B: 7})
