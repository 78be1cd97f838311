"""Key_Shared: who shares a subscription with whom, which consumer a hash belongs to, and what waits for it."""

import pytest

from exacta.core.ids import ConsumerId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Delivering
from exacta.core.subscriptions.keys import HASHES
from exacta.core.values.subscriptions import KeyShared, KeySharedMode, SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import KEYS, Dispatcher
from tests.core.world import World
from tests.docstring_tables import docstring_table

KEY_SHARED = SubscriptionType.KEY_SHARED
TABLE = docstring_table("exacta.core.subscriptions.keys", "a further consumer")
REFUSED = {row: Rejection[cell] for row, cell in TABLE.column("is refused").items()}
OTHER_WAY = "of another mode, or of another promise of order"
THIRDS = [(0, HASHES // 3 - 1), (HASHES // 3, 2 * (HASHES // 3) - 1), (2 * (HASHES // 3), HASHES - 1)]
"""The parts of the hashes, with one key of the tests in each."""


def sticky(*ranges: tuple[int, int], out_of_order: bool = False) -> KeyShared:
    return KeyShared(KeySharedMode.STICKY, ranges, out_of_order)


def split(*, out_of_order: bool = False) -> KeyShared:
    return KeyShared(KeySharedMode.AUTO_SPLIT, (), out_of_order)


def write(world: World, count: int) -> None:
    for _ in range(count):
        Consumer(world).write()


def places(sent: list[tuple[ConsumerId, Delivering]]) -> list[tuple[int, int]]:
    return [(who, each.base) for who, each in sent]


WAYS = [split(), split(out_of_order=True), sticky((0, 9)), sticky((0, 9), out_of_order=True)]


@pytest.mark.parametrize("wanted", range(len(WAYS)))
@pytest.mark.parametrize("present", range(len(WAYS)))
def test_a_consumer_joins_those_of_its_mode_and_order(world: World, present: int, wanted: int) -> None:
    dispatcher = Dispatcher(world, KEY_SHARED)
    dispatcher.connect(shared=WAYS[present])
    again = KeyShared(WAYS[wanted].mode, ((10, 19),) if WAYS[wanted].ranges else (), WAYS[wanted].out_of_order)
    assert dispatcher.ask_to_connect(ConsumerId(7), shared=again) == (DONE if present == wanted else REFUSED[OTHER_WAY])
    for each in list(dispatcher.sent):
        dispatcher.disconnect(each)
    assert dispatcher.ask_to_connect(ConsumerId(8), shared=again) == DONE, "nobody is there any more"
    world.check()


NAMED: dict[str, list[tuple[tuple[int, int], ...]]] = {
    "that names no hash, or not from a lower to a higher one": [(), ((9, 8),)],
    "that names a hash twice, or one of another consumer": [
        ((0, 10),),
        ((20, 30),),
        ((12, 13),),
        ((0, 99),),
        ((36, 36),),
        ((0, 5), (5, 9)),
    ],
    "that names what is no hash": [((-1, 3),), ((60, HASHES),)],
}
FREE = [((0, 9),), ((21, 30),), ((0, 9), (21, 21), (40, HASHES - 1)), ((31, 35),)]


def test_the_table_is_complete() -> None:
    assert TABLE.rows.keys() == {OTHER_WAY, *NAMED}


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        *((ranges, DONE) for ranges in FREE),
        *((ranges, REFUSED[row]) for row, found in NAMED.items() for ranges in found),
    ],
)
def test_a_hash_belongs_to_one_consumer(world: World, ranges: tuple[tuple[int, int], ...], expected: object) -> None:
    dispatcher = Dispatcher(world, KEY_SHARED)
    dispatcher.connect(shared=sticky((36, 39), (10, 20)))
    assert dispatcher.ask_to_connect(ConsumerId(7), shared=sticky(*ranges)) == expected
    world.check()


def test_ranges_count_for_key_shared_subscriptions_only(world: World) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.SHARED)
    dispatcher.connect(shared=sticky())
    assert dispatcher.ask_to_connect(ConsumerId(7), shared=split()) == DONE


def test_a_key_goes_to_the_consumer_that_has_named_its_hash(world: World) -> None:
    dispatcher = Dispatcher(world, KEY_SHARED)
    write(world, 2 * KEYS)
    ends = dispatcher.connect(permits=100, shared=sticky(THIRDS[2], THIRDS[0]))
    middle = dispatcher.connect(permits=100, shared=sticky(THIRDS[1]))
    assert places(dispatcher.pump()) == [(ends, 0), (middle, 1), (ends, 2), (ends, 3), (middle, 4), (ends, 5)]
    world.check()


def test_what_belongs_to_nobody_waits_for_a_consumer_that_names_it(world: World) -> None:
    dispatcher = Dispatcher(world, KEY_SHARED)
    write(world, 2 * KEYS)
    first = dispatcher.connect(permits=100, shared=sticky(THIRDS[0]))
    assert places(dispatcher.pump()) == [(first, 0), (first, 3)]
    middle = dispatcher.connect(permits=100, shared=sticky(THIRDS[1]))
    assert places(dispatcher.pump()) == [(middle, 1), (middle, 4)]
    dispatcher.disconnect(first)
    assert dispatcher.pump() == [], "what the first one had is nobody's now"
    again = dispatcher.connect(permits=100, shared=sticky(THIRDS[2], THIRDS[0]))
    assert places(dispatcher.pump()) == [(again, 0), (again, 2), (again, 3), (again, 5)]
    world.check()


@pytest.mark.parametrize("out_of_order", [False, True])
def test_a_new_owner_waits_for_the_former_one_if_an_order_is_needed(world: World, out_of_order: bool) -> None:
    dispatcher = Dispatcher(world, KEY_SHARED)
    write(world, KEYS)
    one = dispatcher.connect(permits=100, shared=split(out_of_order=out_of_order))
    dispatcher.pump()
    two = dispatcher.connect(permits=100, shared=split(out_of_order=out_of_order))
    write(world, KEYS)
    sent = places(dispatcher.pump())
    assert sent == [(one, 3), (one, 4), *([(two, 5)] if out_of_order else [])]
    world.check()
    assert dispatcher.redeliver(one, 2) == DONE
    assert places(dispatcher.pump()) == [(two, 2), *([] if out_of_order else [(two, 5)])]
    world.check()
