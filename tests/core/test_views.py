"""What a reader is told of aborted transactions: all that it needs, and no look at what comes later."""

from typing import Any

from exacta.core.ids import Offset
from exacta.core.state.aborted import aborted_between
from tests.core.world import World


class Watched(list[Any]):
    """A list that counts how often an element of it is looked at."""

    looked_at = 0

    def __getitem__(self, place: Any) -> Any:
        self.looked_at += 1
        return super().__getitem__(place)


def test_one_that_began_before_and_ends_after_the_others_is_found() -> None:
    world = World()
    world.topic()
    long_one = world.producer("long")
    long_one.add()
    long_one.append()  # offset 0
    for _ in range(5):
        short_one = world.producer("short")
        short_one.add()
        short_one.append()
        short_one.end(commit=False)  # 1 and 2, 3 and 4, …
    long_one.end(commit=False)
    partition = world.state.partition("t", 0)
    assert partition is not None

    def firsts(from_offset: int, end_offset: int) -> list[int]:
        return [entry.first_offset for entry in aborted_between(partition, Offset(from_offset), Offset(end_offset))]

    assert firsts(0, 1) == [0]
    assert firsts(0, 2) == [1, 0]
    assert firsts(4, 6) == [3, 5, 0]
    assert firsts(11, 12) == [0]
    assert firsts(12, 13) == []


def test_a_reader_far_behind_does_not_look_at_what_comes_later() -> None:
    world = World()
    world.topic()
    for _ in range(60):
        producer = world.producer("x")
        producer.add()
        producer.append()
        producer.end(commit=False)
    partition = world.state.partition("t", 0)
    assert partition is not None
    partition.aborted = watched = Watched(partition.aborted)
    assert len(aborted_between(partition, Offset(0), Offset(6))) == 3
    assert watched.looked_at < 15
