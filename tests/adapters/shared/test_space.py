"""Snapshots, cleaning, compaction and sweeping in objects: what the port's contract suites do not look at."""

from collections.abc import Iterator

import pytest

from exacta.adapters.memory.objects import StoreFault
from exacta.ports.journal import Cleaned, CompactionOrder, Failed, Joining, Room
from exacta.ports.shared import Appended, Kind, SharedBroker
from tests.adapters.bench import EVERYTHING
from tests.adapters.compacting import RULES, keyed, keys_of, last_of_each_key
from tests.adapters.shared.led import Cluster, Led
from tests.adapters.turns import batch

SIZE = 300
HOUR_MS = 3_600_000


def joined(blob: bytes | None, events: Iterator[bytes]) -> bytes:
    return b"+".join([*([] if blob is None else [blob]), *events])


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def led(cluster: Cluster) -> Iterator[Led]:
    led = Led(cluster)
    yield led
    led.close()


def fill(led: Led, count: int = 40) -> None:
    for number in range(count):
        led.append(batch(1 + number % 2, number // 2, b"%02d" % number * (SIZE // 2)))


def fold(led: Led) -> Failed | None:
    result: Failed | None = led.turns.wait(lambda done: led.space.fold_snapshot(joined, led.position, done))
    return result


def wants(led: Led) -> bool:
    """Return whether a snapshot is wanted now. (Type checkers take an attribute for what it was a line above.)"""
    return led.space.wants_snapshot


def room(led: Led) -> Room | None:
    """Return the room that there is now."""
    return led.space.room


def clean(led: Led, floors: dict[int, int]) -> int:
    total = 0
    while True:
        result = led.turns.wait(lambda done: led.space.clean(floors, done))
        assert isinstance(result, Cleaned), result
        if not result.freed_bytes:
            return total
        total += result.freed_bytes


def compact(led: Led, *orders: CompactionOrder, floors: dict[int, int]) -> Failed | None:
    result: Failed | None = led.turns.wait(lambda done: led.space.compact(orders, floors, last_of_each_key, done))
    return result


def stray(cluster: Cluster) -> set[str]:
    """Return the objects that the catalog does not have."""
    known = {each.key for each in cluster.entries}
    return set(cluster.store.objects) - known - {key + ".index" for key in known}


class TestSnapshots:
    def test_a_fold_of_objects_and_tail_is_what_the_next_leader_begins_with(self, cluster: Cluster, led: Led) -> None:
        fill(led)
        led.offloaded()
        assert fold(led) is None
        led.append(batch(1, 20, b"later"))
        led.close()
        other = Led(cluster, 2)
        position, blob, events = other.catalog.replay()
        assert blob == b"+".join(b"event of %d at %d" % (1 + at % 2, at // 2) for at in range(40))
        assert list(events) == []
        assert position > other.catalog.tail_from, "it is within the tail"
        other.close()

    def test_the_last_two_are_kept(self, cluster: Cluster, led: Led) -> None:
        for number in range(4):
            led.append(batch(1, number, b"x"))
            assert fold(led) is None
        ends = sorted(each.end for each in cluster.entries if each.kind is Kind.SNAPSHOT)
        assert len(ends) == 2
        assert ends[1] == led.position
        assert len(led.scratch.names()) == 0
        assert len(stray(cluster)) > 0
        cluster.now_ms += HOUR_MS
        led.turns.wait(led.space.sweep)
        assert stray(cluster) == set()

    @pytest.mark.parametrize("what", ["altered", "lost"])
    def test_the_older_one_stands_in(
        self, cluster: Cluster, led: Led, what: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        fill(led)
        led.offloaded()
        older_at = led.catalog.tail_from
        assert led.turns.wait(lambda done: led.space.save_snapshot(b"older", older_at, done)) is None
        led.append(batch(1, 20, b"later"))
        assert led.turns.wait(lambda done: led.space.save_snapshot(b"newer", led.position, done)) is None
        newest = max(cluster.keys(Kind.SNAPSHOT))
        cluster.store.alter(newest, -1)
        if what == "lost":
            cluster.store.lose(newest)
        assert clean(led, {1: 20}) == 0, "the older one alone must not be trusted"
        other = Led(cluster, 2)
        position, blob, events = other.catalog.replay()
        assert (position, blob) == (older_at, b"older")
        assert b"event of 1 at 0" not in list(events)
        assert "is damaged" in caplog.text
        other.close()

    def test_a_store_that_is_away_loses_nothing(self, cluster: Cluster, led: Led) -> None:
        fill(led, 4)
        cluster.store.fault = lambda call, key: StoreFault.REFUSED if call == "put" else None
        assert isinstance(fold(led), Failed)
        assert wants(led)
        cluster.store.fault = lambda call, key: None
        assert fold(led) is None
        assert led.lost == []

    def test_one_is_wanted_by_a_leader_that_finds_more_than_a_segment_behind_the_last(
        self, cluster: Cluster, led: Led
    ) -> None:
        assert not wants(led)
        fill(led)
        led.offloaded()
        assert wants(led)
        other = Led(cluster, 2)
        assert wants(other)
        assert fold(other) is None
        assert not wants(other)
        other.close()
        third = Led(cluster, 3)
        assert not wants(third)
        third.close()


class TestCleaning:
    def two_snapshots(self, led: Led) -> None:
        for _ in range(2):
            assert fold(led) is None
            led.append(batch(9, led.position, b"x"))

    def test_a_change_replaces_the_old_objects_and_they_are_swept_an_hour_later(
        self, cluster: Cluster, led: Led
    ) -> None:
        fill(led)
        self.two_snapshots(led)
        left = led.content(1, 7)
        assert clean(led, {1: 7, 2: 19, 9: 0}) > SIZE * 10
        assert cluster.keys(Kind.CLEANED) != []
        assert led.content(1, 7) == left
        assert len(stray(cluster)) > 2
        assert led.turns.wait(led.space.sweep) == 0, "somebody may read them"
        cluster.now_ms += HOUR_MS
        assert led.turns.wait(led.space.sweep) > 0
        assert stray(cluster) == set()
        other = Led(cluster, 2)
        assert other.content(1, 7) == left
        other.close()

    def test_what_a_living_broker_may_read_is_not_swept(self, cluster: Cluster, led: Led) -> None:
        fill(led)
        self.two_snapshots(led)
        knows = SharedBroker(7, "a follower", b"", led.catalog.version, 0)
        assert led.turns.wait(lambda done: led.ledger.announce(knows, done)) == Appended()
        assert clean(led, {1: 7, 2: 19, 9: 0}) > 0
        before = stray(cluster)
        cluster.now_ms += HOUR_MS
        assert led.turns.wait(lambda done: led.ledger.announce(knows, done)) == Appended()
        led.turns.wait(led.space.sweep)
        assert {key for key in before if key.startswith("segments")} <= stray(cluster)
        knows = knows._replace(catalog=led.catalog.version)
        assert led.turns.wait(lambda done: led.ledger.announce(knows, done)) == Appended()
        led.turns.wait(led.space.sweep)
        assert stray(cluster) == set()

    def test_a_dropped_beginning_leaves_the_catalog(self, cluster: Cluster, led: Led) -> None:
        fill(led)
        self.two_snapshots(led)
        assert clean(led, {9: 0}) > 0
        (entry,) = [each for each in cluster.entries if each.kind is not Kind.SNAPSHOT]
        assert entry.end == led.catalog.tail_from, "the newest one tells how the tail begins"
        other = Led(cluster, 2)
        assert len(other.content(1)) < 5 * SIZE
        other.close()

    @pytest.mark.parametrize("call", ["get", "put"])
    def test_a_store_that_is_away_loses_nothing(self, cluster: Cluster, led: Led, call: str) -> None:
        fill(led)
        self.two_snapshots(led)
        led.turns.wait(lambda done: led.space.clean({1: 0, 2: 0, 9: 0}, done))
        cluster.store.fault = lambda each, key: StoreFault.REFUSED if each == call else None
        with pytest.raises(AssertionError, match="503"):
            clean(led, {1: 7, 2: 19, 9: 0})
        cluster.store.fault = lambda each, key: None
        assert cluster.keys(Kind.CLEANED) == []
        assert clean(led, {1: 7, 2: 19, 9: 0}) > SIZE * 4
        assert not [name for name in led.scratch.names() if name.endswith(".tmp")]

    def test_an_altered_object_is_not_written_again_with_a_right_checksum(self, cluster: Cluster, led: Led) -> None:
        fill(led)
        self.two_snapshots(led)
        led.turns.wait(lambda done: led.space.clean({1: 0, 2: 0, 9: 0}, done))
        for key in cluster.keys(Kind.WRITTEN):
            cluster.store.alter(key, -10)
        before = cluster.entries
        with pytest.raises(AssertionError, match=r"Failed.*the group's checksum is wrong"):
            clean(led, {1: 7, 2: 19, 9: 0})
        assert cluster.keys(Kind.CLEANED) == []
        assert {each.key for each in cluster.entries} <= {each.key for each in before}

    def test_a_leader_that_was_superseded_cleans_nothing_and_deletes_what_it_put(
        self, cluster: Cluster, led: Led
    ) -> None:
        fill(led)
        self.two_snapshots(led)
        led.turns.wait(lambda done: led.space.clean({1: 0, 2: 0, 9: 0}, done))
        other = Led(cluster, 2)
        before, objects = cluster.entries, set(cluster.store.objects)
        assert isinstance(led.turns.wait(lambda done: led.space.clean({1: 7, 2: 19, 9: 0}, done)), Failed)
        assert "another broker leads, in epoch 2" in led.lost[0].reason
        assert cluster.entries == before
        assert set(cluster.store.objects) == objects
        other.close()


LAST = [(26, "c"), (27, "d"), (28, "a"), (29, "b")]


class TestCompaction:
    def keyed_and_sealed(self, led: Led) -> None:
        for number in range(60):
            led.append(keyed(1 + number % 2, number // 2, "abcd"[number // 2 % 4]))
        self.sealed(led)

    def sealed(self, led: Led) -> None:
        led.space.seal()
        led.append(batch(9, led.position, b"x"))
        led.offloaded()

    def found(self, led: Led, stream: int) -> list[tuple[int, str]]:
        return list(keys_of(led.content(stream)))

    def test_it_is_one_object_that_the_next_leader_finds(self, cluster: Cluster, led: Led) -> None:
        self.keyed_and_sealed(led)
        assert compact(led, CompactionOrder(1, EVERYTHING, RULES), floors={1: 0, 2: 0}) is None
        assert self.found(led, 1) == LAST
        assert len(cluster.keys(Kind.COMPACTED)) == 1
        other = Led(cluster, 2)
        assert self.found(other, 1) == LAST
        self.sealed(other)
        assert compact(other, CompactionOrder(2, EVERYTHING, RULES), floors={1: 0, 2: 0}) is None
        assert self.found(other, 1) == LAST
        assert self.found(other, 2) == LAST
        assert clean(other, {1: 0, 2: 0, 9: 0}) == 0
        other.close()

    def test_streams_join(self, cluster: Cluster, led: Led) -> None:
        for number, key in enumerate("ab"):
            led.append(keyed(7, number, key))
        led.append(keyed(1, 2, "c"))
        self.sealed(led)
        order = CompactionOrder(1, 2, RULES, [Joining(7, 0, -1, 400)])
        assert compact(led, order, floors={1: 0, 7: 0}) is None
        assert self.found(led, 1) == [(0, "a"), (1, "b"), (2, "c")]
        other = Led(cluster, 2)
        assert self.found(other, 1) == [(0, "a"), (1, "b"), (2, "c")]
        other.close()

    def test_offloads_go_on_while_a_compaction_is_named(self, cluster: Cluster, led: Led) -> None:
        """What is dropped and not yet named must not come back with another change."""
        self.keyed_and_sealed(led)
        assert compact(led, CompactionOrder(1, EVERYTHING, RULES), floors={1: 0, 2: 0}) is None
        for number in range(30, 40):
            led.append(keyed(1, number, "abcd"[number % 4]))
        self.sealed(led)
        results: list[object] = []
        led.space.compact([CompactionOrder(1, EVERYTHING, RULES)], {1: 0, 2: 0}, last_of_each_key, results.append)
        while not results:
            led.append(batch(9, led.position, bytes(SIZE)))
            led.turns.turn()
        led.offloaded()
        assert results == [None]
        assert len(led.catalog.compacted) == len(cluster.keys(Kind.COMPACTED)) == 1
        assert self.found(led, 1) == [(36, "a"), (37, "b"), (38, "c"), (39, "d")]


def room_left(led: Led) -> int:
    """Return what the ledger may take of batches: three quarters, less what the tail has."""
    return (1 << 30) - 1 - (1 << 28) - led.position


class TestRoom:
    def test_appends_are_held_back_while_objects_cannot_be_put(self, cluster: Cluster) -> None:
        led = Led(cluster)
        assert room(led) is None
        cluster.store.fault = lambda call, key: StoreFault.REFUSED
        led.space._tail_bytes = (1 << 30) - 1
        fill(led)
        assert room(led) == Room(append_bytes=room_left(led), is_used_up=False, is_low=False)
        led.space._tail_bytes = 10_000
        assert room(led) == Room(append_bytes=0, is_used_up=True, is_low=True)
        led.close()
