"""Random histories of a catalog: a reader that takes each change finds what one finds who begins with the last."""

from random import Random

import pytest

from exacta.ports.journal import Cleaned, CompactionOrder
from tests.adapters.bench import EVERYTHING
from tests.adapters.compacting import RULES, keyed, last_of_each_key
from tests.adapters.shared.led import Cluster, Led
from tests.adapters.shared.test_files import Opened
from tests.adapters.shared.test_space import joined

STREAMS = range(1, 6)
STEPS = 30


class History:
    """A leader that does anything, and a broker that looks now and then."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = Cluster()
        self.led = Led(self.cluster, segment_bytes=self.random.choice([1_000, 2_000, 5_000]))
        self.next = dict.fromkeys(STREAMS, 0)
        self.floors = dict.fromkeys(STREAMS, 0)
        self.followed = Opened(self.cluster.store)
        self.kept: dict[str, int] = {"incremental": 0, "anew": 0}

    def append(self) -> None:
        for _ in range(self.random.randrange(1, 20)):
            stream = self.random.choice(STREAMS)
            self.led.append(keyed(stream, self.next[stream], self.random.choice("abc"), self.random.choice([50, 400])))
            self.next[stream] += 1

    def seal(self) -> None:
        self.led.space.seal()
        self.append()
        self.led.offloaded()

    def fold(self) -> None:
        self.led.turns.wait(lambda done: self.led.space.fold_snapshot(joined, self.led.position, done))

    def clean(self) -> None:
        for stream in self.random.sample(STREAMS, 2):
            if stream in self.floors:
                self.floors[stream] = self.random.randint(self.floors[stream], self.next[stream])
        if self.random.random() < 0.1:
            self.floors.pop(self.random.choice(STREAMS), None)
        result = self.led.turns.wait(lambda done: self.led.space.clean(self.floors, done))
        assert isinstance(result, Cleaned), result

    def compact(self) -> None:
        orders = [CompactionOrder(each, EVERYTHING, RULES) for each in self.random.sample(STREAMS, 2)]
        orders = [each for each in orders if each.stream in self.floors]
        space = self.led.space
        assert self.led.turns.wait(lambda done: space.compact(orders, self.floors, last_of_each_key, done)) is None

    def change_leader(self) -> None:
        self.led.close()
        self.led = Led(self.cluster, self.random.choice([1, 2]), self.led.space._segment_bytes)

    def look(self) -> None:
        tables = self.cluster.database.primary.visible
        index = self.followed.catalog.index
        followed, fresh = self.followed, Opened(self.cluster.store)
        for each in (followed, fresh):
            each.take(tables.catalog, list(tables.entries.values()))
        self.kept["incremental" if followed.catalog.index is index else "anew"] += 1
        for stream, floor in self.floors.items():
            end = self.next[stream]
            for offset in (floor, self.random.randint(floor, end)):
                assert followed.content(stream, offset) == fresh.content(stream, offset)
                found, wanted = (
                    each.catalog.index.find(stream, offset, EVERYTHING, EVERYTHING) for each in (followed, fresh)
                )
                assert [[*each.last_offsets] for each in found] == [[*each.last_offsets] for each in wanted]
            assert followed.catalog.index.compacted_to(stream) == fresh.catalog.index.compacted_to(stream)
            leads = self.led.catalog.index.find(stream, floor, EVERYTHING, EVERYTHING)
            offsets = [offset for extent in leads for offset in extent.last_offsets]
            assert offsets[: len(flat(fresh, stream, floor))] == flat(fresh, stream, floor)

    def run(self) -> None:
        steps = [self.append, self.append, self.seal, self.fold, self.clean, self.clean, self.compact]
        looks_often = self.random.random() < 0.5
        for step in range(STEPS):
            self.random.choice([*steps, self.change_leader, *([self.look] if looks_often else [])])()
            if step == STEPS // 4:
                self.look()
        self.look()
        assert self.led.lost == []
        self.led.close()


def flat(opened: Opened, stream: int, offset: int) -> list[int]:
    extents = opened.catalog.index.find(stream, offset, EVERYTHING, EVERYTHING)
    return [each for extent in extents for each in extent.last_offsets]


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100))
def test_a_catalog_that_is_followed_is_the_one_that_is_there(seed: int) -> None:
    History(seed).run()
