"""Random histories of brokers over one ledger and one store: who leads, cleans or dies changes nothing for readers."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from exacta.adapters.memory.objects import StoreFault
from exacta.adapters.shared.journal import SharedJournal
from exacta.ports.following import SharedReader
from exacta.ports.journal import Buffer, Cleaned, CompactionOrder, Failed, JournalReader
from exacta.ports.shared import Appended, SharedBroker
from tests.adapters.bench import EVERYTHING
from tests.adapters.compacting import RULES, keyed, last_of_each_key
from tests.adapters.shared.brokers import BrokerOf, Brokers
from tests.adapters.shared.test_space import joined

STREAMS = range(1, 6)
COMPACTED = 5  # this one is compacted, the others are not
STEPS = 60


class World:
    """Three brokers, of which one leads; what was appended is known here."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.brokers = Brokers(segment_bytes=self.random.choice([1_000, 3_000]))
        self.passed_ms = 0
        self.brokers.database.primary.now_ms = lambda: int(self.brokers.loop.time() * 1_000) + self.passed_ms
        self.written: dict[int, list[bytes]] = {stream: [] for stream in STREAMS}
        self.keys: list[str] = []
        self.floors = dict.fromkeys(STREAMS, 0)
        self.follow = [self.brokers.open(node_id).follow() for node_id in (1, 2, 3)]
        self.leader = self.follow[0]
        self.leader.lead()

    # --- what the leader does -----------------------------------------------------------------------------------------

    @property
    def journal(self) -> SharedJournal:
        return self.leader.journal

    def wait(self, start: Callable[..., object]) -> Any:
        results: list[Any] = []
        start(results.append)
        self.brokers.until(lambda: bool(results))
        return results[0]

    def append(self) -> None:
        for _ in range(self.random.randrange(1, 15)):
            stream = self.random.choice(STREAMS)
            key = self.random.choice("abc")
            entry = keyed(stream, len(self.written[stream]), key, self.random.choice([50, 300]))
            self.leader.append(entry)
            self.written[stream].append(bytes(entry.payload[0]))
            if stream == COMPACTED:
                self.keys.append(key)

    def seal(self) -> None:
        self.journal.seal()
        self.append()

    def fold(self) -> None:
        result = self.wait(lambda done: self.journal.fold_snapshot(joined, done))
        assert result is None or self.is_away, result

    def clean(self) -> None:
        for stream in self.random.sample(STREAMS, 2):
            self.floors[stream] = self.random.randint(self.floors[stream], len(self.written[stream]))
        result = self.wait(lambda done: self.journal.clean(self.floors, done))
        assert isinstance(result, Cleaned) or self.is_away, result

    def compact(self) -> None:
        orders = [CompactionOrder(COMPACTED, EVERYTHING, RULES)]
        result = self.wait(lambda done: self.journal.compact(orders, self.floors, last_of_each_key, done))
        assert result is None or self.is_away, result

    def die_in_the_midst(self) -> None:
        """Let the leader begin something, and die before it ends; another one leads."""
        begun: list[object] = []
        self.random.choice(
            [
                lambda: self.journal.clean(self.floors, begun.append),
                lambda: self.journal.fold_snapshot(joined, begun.append),
                lambda: self.journal.compact(
                    [CompactionOrder(COMPACTED, EVERYTHING, RULES)], self.floors, last_of_each_key, begun.append
                ),
                self.seal,
            ]
        )()
        self.turns(self.random.randrange(0, 12))
        self.change_leader()

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.brokers.loop.run_until_complete(asyncio.sleep(0))

    def change_leader(self) -> None:
        old = self.leader
        number = self.follow.index(old)
        self.leader = self.random.choice([each for each in self.follow if each is not old])
        self.leader.want_lead()
        old.kill()
        self.brokers.until(lambda: self.leader.led is not None)
        self.append()  # as each leader does at once: it proves what the one before has appended
        self.follow[number] = self.brokers.open(old.node_id).follow()

    # --- what others do -----------------------------------------------------------------------------------------------

    @property
    def is_away(self) -> bool:
        return self.brokers.store.fault("put", "") is not None

    def store_goes(self) -> None:
        self.brokers.store.fault = lambda call, key: StoreFault.REFUSED if call == "put" else None

    def store_comes(self) -> None:
        self.brokers.store.fault = lambda call, key: None

    def pass_time(self) -> None:
        """Let some time pass, in which old objects are swept; each broker says what it knows of the catalog."""
        self.brokers.pass_seconds(0.3)
        for _ in range(2):
            self.passed_ms += 3_600_000
            for broker in self.follow:
                reader = self.reader(broker)
                about = SharedBroker(broker.node_id, f"instance {broker.node_id}", b"", reader.catalog, 0)
                assert self.wait(lambda done, said=about, by=broker: by.ledger.announce(said, done)) == Appended()
            self.wait(self.journal._space.sweep)

    def reader(self, broker: BrokerOf) -> SharedReader:
        return self.journal if broker is self.leader else broker.follower

    # --- what everybody finds -----------------------------------------------------------------------------------------

    def look(self) -> None:
        self.brokers.until(lambda: all(self.reader(each).position == self.journal.position for each in self.follow))
        for broker in self.follow:
            for stream in STREAMS:
                self.look_at(self.reader(broker), stream)

    def look_at(self, reader: JournalReader, stream: int) -> None:
        end = len(self.written[stream])
        offset = self.random.randint(self.floors[stream], end)
        extents = reader.find(stream, offset, end, EVERYTHING)
        read: list[Buffer | Failed] = self.wait(lambda done: reader.read(extents, done))
        failed = [each for each in read if isinstance(each, Failed)]
        assert not failed
        data = b"".join(each for each in read if not isinstance(each, Failed))
        offsets = [each for extent in extents for each in extent.last_offsets]
        if stream != COMPACTED:
            assert offsets == [*range(offset, end)]
            assert data == b"".join(self.written[stream][offset:])
            return
        last = {key: at for at, key in enumerate(self.keys)}
        assert {at for at in last.values() if at >= offset} <= set(offsets)
        begins = max(reader.compacted_to(stream), offset)
        assert [at for at in offsets if at >= begins] == [*range(begins, end)]
        assert offsets == sorted(set(offsets))

    def run(self) -> None:
        steps = [self.append, self.append, self.seal, self.fold, self.clean, self.clean, self.compact, self.look]
        steps += [self.change_leader, self.die_in_the_midst, self.pass_time, self.store_goes, self.store_comes]
        for _ in range(STEPS):
            self.random.choice([*steps, self.store_comes])()
        self.store_comes()
        self.look()
        late = self.brokers.open(9).follow()
        self.brokers.until(lambda: late.follower.position == self.journal.position)
        for stream in STREAMS:
            self.look_at(late.follower, stream)
        assert not any(broker.failures for broker in self.follow)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(60))
def test_every_broker_finds_what_was_appended(seed: int) -> None:
    world = World(seed)
    try:
        world.run()
    finally:
        world.brokers.loop.close()
