"""Offload: the tail becomes objects, whatever fails or dies on the way."""

from collections.abc import Iterator

import pytest

from exacta.adapters.memory.objects import StoreFault
from exacta.ports.shared import Appended, Kind, SharedBroker
from tests.adapters.shared.led import Cluster, Led
from tests.adapters.turns import batch

SIZE = 300
COUNT = 40


def data_of(number: int) -> bytes:
    return b"%02d" % number * (SIZE // 2)


def wanted(stream: int, count: int = COUNT) -> bytes:
    return b"".join(data_of(number) for number in range(stream - 1, count, 2))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def led(cluster: Cluster) -> Iterator[Led]:
    led = Led(cluster)
    yield led
    led.close()


def fill(led: Led, count: int = COUNT) -> None:
    for number in range(count):
        led.append(batch(1 + number % 2, number // 2, data_of(number)))


def test_the_tail_becomes_objects_and_leaves_the_ledger(cluster: Cluster, led: Led):
    fill(led)
    led.offloaded()
    tables = cluster.database.primary.visible
    assert len(cluster.keys(Kind.WRITTEN)) >= 5
    assert tables.tail_from == led.catalog.tail_from > 4 * 2000
    assert tables.intents == {}
    assert tables.tail[0].position == tables.tail_from, "no broker is announced that has not seen it"
    for stream in (1, 2):
        assert led.content(stream) == wanted(stream)
    assert led.lost == []
    assert led.damage == []
    assert len(led.scratch.names()) == len(cluster.keys(Kind.WRITTEN)), "nothing is left but indexes"


def test_what_was_looked_up_in_the_tail_is_read_in_the_object(cluster: Cluster, led: Led):
    fill(led, 2)
    (extent,) = led.catalog.index.find(1, 0, 1, 1 << 20)
    assert led.reader.read_cached([extent]) == [data_of(0)]
    fill_from = 2
    for number in range(fill_from, COUNT):
        led.append(batch(1 + number % 2, number // 2, data_of(number)))
    led.offloaded()
    assert led.tail.size(0) is None
    assert led.turns.wait(lambda done: led.reader.read([extent], done)) == [data_of(0)]
    assert led.reader.read_cached([extent]) == [data_of(0)]


def test_the_next_leader_finds_objects_and_tail(cluster: Cluster, led: Led):
    fill(led)
    led.offloaded()
    led.close()
    other = Led(cluster, 2)
    for stream in (1, 2):
        assert other.content(stream) == wanted(stream)
    assert other.epoch == led.epoch + 1
    fill_more = [batch(1, COUNT // 2 + number, data_of(number)) for number in range(10)]
    for entry in fill_more:
        other.append(entry)
    other.offloaded()
    assert other.content(1) == wanted(1) + b"".join(map(data_of, range(10)))
    assert len(other.events()) > COUNT
    other.close()


STEPS = ["the intent", "the segment", "the index", "the change"]


@pytest.mark.parametrize("step", STEPS)
def test_a_leader_dies_after_each_step_of_an_offload(cluster: Cluster, step: str):
    led = Led(cluster)
    fill(led, 6)
    puts = 0

    def die_at_put(call: str, key: str) -> StoreFault | None:
        nonlocal puts
        puts += call == "put"
        dies = call == "put" and (step, puts) in (("the intent", 1), ("the segment", 2))
        return StoreFault.REFUSED if dies else None

    cluster.store.fault = die_at_put
    if step == "the index":
        led.ledger.change_catalog = lambda *arguments: None  # type: ignore[method-assign]  # it is not sent any more
        led.append(batch(1, 3, data_of(6)))
        led.turns.run_until(lambda: puts == 2 and not led.turns._queue.qsize())
    elif step == "the change":
        led.append(batch(1, 3, data_of(6)))
        led.turns.run_until(lambda: bool(cluster.keys(Kind.WRITTEN)))
    else:
        led.append(batch(1, 3, data_of(6)))
        led.turns.run_until(lambda: any(each.seconds == 1.0 for each in led.turns.timers))
    led.die()
    led.turns.drain()
    cluster.store.fault = lambda call, key: None
    left = set(cluster.store.objects)
    assert len(left) == {"the intent": 0, "the segment": 1, "the index": 2, "the change": 2}[step]
    other = Led(cluster, 2)
    other.append(batch(1, 4, data_of(8)))
    other.offloaded()
    assert other.content(1) == b"".join(map(data_of, (0, 2, 4, 6, 8)))
    assert other.content(2) == b"".join(map(data_of, (1, 3, 5)))
    cluster.now_ms += 3_600_000
    assert isinstance(other.turns.wait(other.space.sweep), int)
    assert cluster.database.primary.visible.intents == {}
    known = {each.key for each in cluster.entries}
    assert set(cluster.store.objects) == known | {key + ".index" for key in known}
    assert other.content(1) == b"".join(map(data_of, (0, 2, 4, 6, 8)))
    other.close()


@pytest.mark.parametrize("fault", StoreFault)
@pytest.mark.parametrize("nth", [1, 2])
def test_a_store_that_fails_is_tried_again(cluster: Cluster, led: Led, fault: StoreFault, nth: int):
    puts: list[str] = []

    def fail(call: str, key: str) -> StoreFault | None:
        if call == "put":
            puts.append(key)
        return fault if call == "put" and len(puts) == nth else None

    cluster.store.fault = fail
    fill(led, 8)
    led.turns.run_until(lambda: any(each.seconds == 1.0 for each in led.turns.timers))
    assert cluster.keys(Kind.WRITTEN) == []
    assert led.content(1) == wanted(1, 8)
    led.turns.fire(1.0)
    led.offloaded()
    assert len(cluster.keys(Kind.WRITTEN)) == 1
    assert led.content(1) == wanted(1, 8)
    assert led.lost == []


def test_an_object_that_reads_differently_is_not_registered(cluster: Cluster, led: Led):
    def alter(call: str, key: str) -> StoreFault | None:
        if call == "get" and key in cluster.store.objects and not key.endswith(".index"):
            cluster.store.alter(key, 200)
        return None

    cluster.store.fault = alter
    fill(led, 8)
    led.turns.run_until(lambda: any(each.seconds == 1.0 for each in led.turns.timers))
    assert cluster.keys(Kind.WRITTEN) == []
    cluster.store.fault = lambda call, key: None
    led.turns.fire(1.0)
    led.offloaded()
    assert led.content(1) == wanted(1, 8)


def test_a_paused_uploader_that_wakes_registers_nothing(cluster: Cluster):
    led = Led(cluster)
    fill(led, 6)
    held: list[object] = []
    change_catalog = led.ledger.change_catalog
    led.ledger.change_catalog = lambda *arguments: held.append(arguments)  # type: ignore[method-assign]
    led.append(batch(1, 3, data_of(6)))
    led.turns.run_until(lambda: bool(held))
    other = Led(cluster, 2)
    cluster.now_ms += 3_600_000
    assert other.turns.wait(other.space.sweep) == 1
    other.offloaded()
    before = cluster.database.primary.visible.entries
    change_catalog(*held[0])  # type: ignore[misc]
    led.turns.run_until(lambda: bool(led.lost))
    assert "another broker leads" in led.lost[0].reason
    assert cluster.database.primary.visible.entries == before
    assert other.content(1) == b"".join(map(data_of, (0, 2, 4, 6)))
    led.die()
    other.close()


def test_an_upload_that_outlives_its_intent_registers_nothing_and_is_made_again(cluster: Cluster, led: Led):
    fill(led, 6)
    held: list[object] = []
    change_catalog = led.ledger.change_catalog
    led.ledger.change_catalog = lambda *arguments: held.append(arguments)  # type: ignore[method-assign]
    led.append(batch(1, 3, data_of(6)))
    led.turns.run_until(lambda: bool(held))
    cluster.now_ms += 3_600_000
    assert led.turns.wait(led.space.sweep) == 1
    led.ledger.change_catalog = change_catalog  # type: ignore[method-assign]
    change_catalog(*held[0])  # type: ignore[misc]
    led.turns.run_until(lambda: any(each.seconds == 1.0 for each in led.turns.timers))
    assert cluster.keys(Kind.WRITTEN) == []
    assert led.lost == []
    led.turns.fire(1.0)
    led.offloaded()
    assert len(cluster.keys(Kind.WRITTEN)) == 1


def test_a_change_of_unknown_outcome_ends_the_lead(cluster: Cluster, led: Led):
    fill(led, 6)
    change_catalog = led.ledger.change_catalog

    def lose(*arguments: object) -> None:
        for way in cluster.database.primary.sessions:
            way.wire.replies.to_lose = 1
        change_catalog(*arguments)  # type: ignore[arg-type]

    led.ledger.change_catalog = lose  # type: ignore[assignment, method-assign]
    led.append(batch(1, 3, data_of(6)))
    led.turns.run_until(lambda: bool(led.lost))
    assert cluster.keys(Kind.WRITTEN) != [], "it was carried out"
    other = Led(cluster, 2)
    assert other.content(1) == b"".join(map(data_of, (0, 2, 4, 6)))
    other.close()


def test_rows_stay_until_every_broker_that_lives_has_seen_the_catalog(cluster: Cluster, led: Led):
    follower = SharedBroker(7, "a follower", b"", 0, 0)
    assert led.turns.wait(lambda done: led.ledger.announce(follower, done)) == Appended()
    fill(led)
    led.offloaded()
    tail = cluster.database.primary.visible.tail
    assert tail[0].position == 0
    knows = follower._replace(catalog=led.catalog.version)
    assert led.turns.wait(lambda done: led.ledger.announce(knows, done)) == Appended()
    assert cluster.database.primary.visible.tail[0].position == led.catalog.tail_from


def test_what_is_altered_in_the_tail_does_not_become_an_object(cluster: Cluster, led: Led):
    fill(led, 4)
    segment = led.tail.growing
    assert segment is not None
    segment.bodies[1] = bytes(len(segment.bodies[1] or b""))
    for number in range(4, 8):
        led.append(batch(1 + number % 2, number // 2, data_of(number)))
    led.turns.run_until(lambda: bool(led.damage))
    assert cluster.keys(Kind.WRITTEN) == []
