"""Server-side assignors: every partition has one owner who subscribes to it, shares are even, and few move."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exacta.core.groups.consumer.assignors import ASSIGNORS, Assignor, Subscriber, Target, assign_range, assign_uniform
from tests.shares import examples

TOPICS = [bytes([number]) * 16 for number in range(4)]
EXAMPLES = settings(max_examples=examples(300))

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), max_size=4)
subscriptions = st.frozensets(st.sampled_from(TOPICS), max_size=4)
groups = st.dictionaries(st.sampled_from([f"m{number}" for number in range(6)]), subscriptions, max_size=6)


def subscribers(topics: dict[str, frozenset[bytes]], owned: Target | None = None) -> dict[str, Subscriber]:
    held = owned or {}
    return {name: Subscriber(topics=those, owned=held.get(name, frozenset())) for name, those in topics.items()}


@EXAMPLES
@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS.keys())
@given(group=groups, topics=counts, before=groups, topics_before=counts)
def test_every_partition_has_one_owner_among_its_subscribers(
    assign: Assignor,
    group: dict[str, frozenset[bytes]],
    topics: dict[bytes, int],
    before: dict[str, frozenset[bytes]],
    topics_before: dict[bytes, int],
) -> None:
    earlier = assign(subscribers(before), topics_before)  # of other members, subscriptions and topics
    target = assign(subscribers(group, earlier), topics)
    assert target.keys() == group.keys()
    given_out = [partition for partitions in target.values() for partition in partitions]
    assert len(given_out) == len(set(given_out))
    read = frozenset().union(*group.values()) & topics.keys()
    assert set(given_out) == {(topic, index) for topic in read for index in range(topics[topic])}
    for name, partitions in target.items():
        assert {topic for topic, _ in partitions} <= group[name]
    assert assign(subscribers(group, target), topics) == target, "nothing has changed, nothing moves"


@EXAMPLES
@given(
    names=st.sets(st.integers(0, 9), min_size=1),
    later=st.sets(st.integers(0, 9), min_size=1),
    topics=counts,
    more=counts,
)
def test_uniform_moves_as_few_as_even_shares_take(
    names: set[int], later: set[int], topics: dict[bytes, int], more: dict[bytes, int]
) -> None:
    everything = frozenset(TOPICS)
    before = assign_uniform(subscribers({f"m{name}": everything for name in names}), topics)
    grown = {topic: max(topics.get(topic, 0), more.get(topic, 0)) for topic in topics.keys() | more.keys()}
    target = assign_uniform(subscribers({f"m{name}": everything for name in later}, before), grown)
    share, extra = divmod(sum(grown.values()), len(later))
    loads = sorted(map(len, target.values()), reverse=True)
    assert loads == [share + 1] * extra + [share] * (len(later) - extra)
    moved = sum(len(before.get(name, frozenset()) - target[name]) for name in target)
    kept = sorted((len(before.get(name, ())) for name in target), reverse=True)
    fewest = sum(max(0, had - (share + (place < extra))) for place, had in enumerate(kept))
    assert moved == fewest


@settings(max_examples=examples(200))
@given(
    group=st.dictionaries(st.sampled_from("abc"), st.frozensets(st.sampled_from(TOPICS[:3])), min_size=1, max_size=3),
    topics=st.dictionaries(st.sampled_from(TOPICS[:3]), st.integers(1, 2), max_size=3),
)
def test_uniform_is_as_even_as_subscriptions_allow(
    group: dict[str, frozenset[bytes]], topics: dict[bytes, int]
) -> None:
    target = assign_uniform(subscribers(group), topics)

    def unevenness(loads: list[int]) -> int:
        return sum(load * load for load in loads)

    choices = [
        [name for name in group if topic in group[name]]
        for topic, count in topics.items()
        for _ in range(count)
        if any(topic in read for read in group.values())
    ]
    best = min(unevenness([owners.count(name) for name in group]) for owners in itertools.product(*choices))
    assert unevenness([len(partitions) for partitions in target.values()]) == best


def test_uniform_evens_out_by_a_chain_of_moves() -> None:
    """Nobody can give to who has least directly: a hands one of the first topic to b, b one of the second to c."""
    first, second = TOPICS[:2]
    group = {"a": frozenset({first}), "b": frozenset({first, second}), "c": frozenset({second})}
    owned = {
        "a": frozenset((first, index) for index in range(4)),
        "b": frozenset((second, index) for index in range(3)),
        "c": frozenset((second, index) for index in range(3, 5)),
    }
    target = assign_uniform(subscribers(group, owned), {first: 4, second: 5})
    assert [len(target[name]) for name in "abc"] == [3, 3, 3]


def test_range_gives_neighbours_and_the_same_ones_of_topics_that_are_partitioned_alike() -> None:
    group = {
        "z": Subscriber(topics=frozenset(TOPICS[:2]), instance_id="1"),
        "a": Subscriber(topics=frozenset(TOPICS[:2])),
        "b": Subscriber(topics=frozenset(TOPICS[:1])),
    }
    target = assign_range(group, {TOPICS[0]: 7, TOPICS[1]: 3})
    assert {name: sorted(partitions) for name, partitions in target.items()} == {
        "z": [*((TOPICS[0], index) for index in (0, 1, 2)), *((TOPICS[1], index) for index in (0, 1))],
        "a": [*((TOPICS[0], index) for index in (3, 4)), (TOPICS[1], 2)],
        "b": [(TOPICS[0], index) for index in (5, 6)],
    }


def test_a_large_group_takes_no_time() -> None:
    """Ten thousand partitions, a hundred members, one more: what the event loop waits for."""
    topics = {bytes([number]) * 16: 1000 for number in range(10)}
    everything = frozenset(topics)
    group = {f"m{number}": everything for number in range(100)}
    target = assign_uniform(subscribers(group), topics)
    more = assign_uniform(subscribers({**group, "more": everything}, target), topics)
    assert len(more["more"]) == 10_000 // 101
