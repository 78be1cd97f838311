"""Topics are found by name and by id, and paged in the order of their names."""

from exacta.core.queries.log_dirs import all_places, staged_bytes
from exacta.core.queries.topics import (
    PagedTopic,
    TopicShape,
    sorted_topic_names,
    topic_page,
    topic_shape,
    topic_shapes,
)
from tests.core.world import World


def a_world() -> World:
    world = World()
    for name, count in (("b", 3), ("a", 2), ("c", 1)):
        world.topic(name, count)
    return world


def shape(name: str, count: int) -> TopicShape:
    return TopicShape(name, name.encode().ljust(16, b"0"), count)


def test_a_topic_is_found_by_its_name_or_by_its_id() -> None:
    state = a_world().state
    assert topic_shape(state, 0, "b") == shape("b", 3)
    assert topic_shape(state, 0, "x") is None
    wanted = [("", shape("a", 2).topic_id), ("c", None), ("a", b"?" * 16), ("x", None)]
    assert topic_shapes(state, 0, wanted) == [shape("a", 2), shape("c", 1), None, None]


def test_a_page_ends_within_a_topic_and_the_next_one_goes_on_there() -> None:
    state = a_world().state
    names = sorted_topic_names(state, 0)
    assert names == ["a", "b", "c"]
    first = topic_page(state, 0, names, ("", 0), 4)
    assert first.topics == [PagedTopic("a", shape("a", 2), 0, 2), PagedTopic("b", shape("b", 3), 0, 2)]
    assert first.following == ("b", 2)
    second = topic_page(state, 0, names, first.following, 4)
    assert second.topics == [PagedTopic("b", shape("b", 3), 2, 3), PagedTopic("c", shape("c", 1), 0, 1)]
    assert second.following is None


def test_a_page_that_is_full_at_the_end_of_a_topic_names_the_next_one() -> None:
    state = a_world().state
    assert topic_page(state, 0, ["a", "b"], ("", 0), 2).following == ("b", 0)
    assert topic_page(state, 0, ["a"], ("", 0), 2).following is None


def test_a_topic_that_is_not_there_takes_no_room() -> None:
    page = topic_page(a_world().state, 0, ["a", "aa", "b"], ("", 0), 3)
    assert page.topics[1] == PagedTopic("aa", None)
    assert page.following == ("b", 1)


def test_a_place_that_is_past_the_end_of_a_topic_takes_no_room() -> None:
    page = topic_page(a_world().state, 0, ["a", "b"], ("a", 9), 3)
    assert [(each.name, list(range(each.first, each.end))) for each in page.topics] == [("a", []), ("b", [0, 1, 2])]


def test_partitions_are_listed_with_what_is_staged_for_them() -> None:
    state = a_world().state
    assert [(topic, [*indexes]) for topic, indexes in all_places(state, 0)] == [
        ("b", [0, 1, 2]),
        ("a", [0, 1]),
        ("c", [0]),
    ]
    assert staged_bytes(state, 0, ("a", [1, 7])) == {1: 0}
    assert staged_bytes(state, 0, ("x", [0])) == {}
