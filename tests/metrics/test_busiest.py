"""The busiest topics have series of their own, every series only grows, and nothing is counted twice or lost."""

from hypothesis import given
from hypothesis import strategies as st

from exacta.metrics import families
from exacta.metrics.busiest import Busiest
from exacta.metrics.measured import largest

growths = st.dictionaries(st.sampled_from("abcde"), st.tuples(st.integers(0, 9), st.integers(0, 9)))


@given(st.lists(growths, max_size=12), st.integers(1, 3))
def test_series_only_grow_and_their_growth_is_that_of_the_topics(
    rounds: list[dict[str, tuple[int, int]]], most: int
) -> None:
    busiest = Busiest(2, most)
    totals: dict[str, tuple[int, int]] = {}
    latest: dict[str, list[int]] = {}
    others = [0, 0]
    for growth in rounds:
        for topic, (first, second) in growth.items():
            before = totals.get(topic, (0, 0))
            totals[topic] = before[0] + first, before[1] + second
        own, rest = busiest.divide(totals)
        assert len(own) <= most
        grown = [now - then for now, then in zip(rest, others, strict=True)]
        for topic, amounts in own.items():
            last = latest.get(topic, [0, 0])
            grown = [all_ + now - then for all_, now, then in zip(grown, amounts, last, strict=True)]
            assert all(now >= then for now, then in zip(amounts, last, strict=True))
        assert all(now >= then for now, then in zip(rest, others, strict=True))
        assert grown == [sum(each[0] for each in growth.values()), sum(each[1] for each in growth.values())]
        latest |= {topic: list(amounts) for topic, amounts in own.items()}
        others = list(rest)


def test_a_topic_that_becomes_the_busiest_takes_the_place_of_another() -> None:
    busiest = Busiest(1, 1)
    assert busiest.divide({"a": (10,), "b": (1,)}) == ({"a": [10]}, [1])
    assert busiest.divide({"a": (10,), "b": (2,)}) == ({"a": [10]}, [2])
    own, others = busiest.divide({"a": (10,), "b": (1002,)})
    assert (own, others) == ({"b": [1000]}, [2])


def test_a_topic_that_is_made_anew_begins_again() -> None:
    busiest = Busiest(1, 1)
    busiest.divide({"a": (10,)})
    assert busiest.divide({"a": (3,)}) == ({"a": [13]}, [0])
    busiest.divide({})
    assert busiest.divide({"a": (4,)}) == ({"a": [4]}, [0])


def test_topics_come_by_their_names_and_not_in_the_order_of_a_set() -> None:
    names = [f"topic-{number}" for number in range(10, 30)]
    own, _ = Busiest(1, 20).divide(dict.fromkeys(reversed(names), (1,)))
    assert list(own) == names


def test_of_equal_values_the_name_decides_which_is_shown() -> None:
    names = "abcd"
    found = largest(families.TOPIC_HELD_BACK, {(name,): 1.0 for name in names}, 2)
    assert found == largest(families.TOPIC_HELD_BACK, {(name,): 1.0 for name in reversed(names)}, 2)
