"""The changes to a subscription, whatever place an entry has in its delivery: the table of `progress.py`, swept."""

from collections.abc import Callable

import pytest

from exacta.core.commands import DeleteRecords, DeleteTopic, Skip
from exacta.core.commands.subscriptions import LATEST
from exacta.core.ids import ConsumerId, Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.subscriptions.notices import ConsumerClosed
from exacta.core.values.subscriptions import IN_ORDER, SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import Dispatcher
from tests.core.world import Handle, World
from tests.docstring_tables import docstring_table

DELAY_MS = 50
THE_ENTRY = 1
"""The entry that is looked at; there is one before it and one behind it."""


class Scene:
    """Three entries, a consumer, and the entry in the middle in some place."""

    def __init__(self, world: World, subscription_type: SubscriptionType, place: str, *, durable: bool) -> None:
        self.world = world
        self.dispatcher = Dispatcher(world, subscription_type, durable=durable)
        self.client = Consumer(world, durable=durable)
        self.handle: Handle | None = None
        for _ in range(3):
            self.client.write()
        self.is_delayed = place == "delayed" and subscription_type not in IN_ORDER
        if place == "delayed":
            self.dispatcher.deliver_at_ms[THE_ENTRY] = world.now_ms + DELAY_MS
        self.consumer = self.dispatcher.connect(permits=0 if place == "not looked at" else 3)
        self.dispatcher.pump()
        if place == "waiting":
            self.dispatcher.permit(self.consumer, -100)
            assert self.dispatcher.redeliver(self.consumer, THE_ENTRY) == DONE
        elif place == "withheld":
            self.handle = world.handle()
            assert self.client.acknowledge((THE_ENTRY, THE_ENTRY), inside=self.handle) == DONE
        world.check()

    def comes(self) -> str | None:
        """Return when the entry is delivered to who has it not: at once, or once delays and transactions are over."""
        if not self.dispatcher.exists():
            return None
        delivery = self.dispatcher.delivery
        if delivery is None:
            self.consumer = self.dispatcher.connect()
        self.dispatcher.permit(self.consumer, 1_000)
        self.dispatcher.redeliver(self.consumer)
        early = self.bases()
        assert self.handle is None or THE_ENTRY not in early
        self.world.check()
        if self.handle is not None:
            assert self.handle.end(commit=False) == DONE
        self.world.pass_time(DELAY_MS)
        late = self.bases()
        self.world.check()
        assert [*early, *late].count(THE_ENTRY) <= 1
        assert not self.is_delayed or THE_ENTRY not in early
        return "at once" if THE_ENTRY in early else "later" if THE_ENTRY in late else None

    def bases(self) -> list[int]:
        return [each.base for _, each in self.dispatcher.pump()]


def skip(scene: Scene, before: int, name: str | None = "s") -> object:
    return scene.world.send(Skip(topic="t", partition=0, before=Offset(before), subscription=name))


def delete_records(scene: Scene) -> object:
    answer = scene.world.send(DeleteRecords(topic="t", partition=0, before_offset=THE_ENTRY + 1))
    return answer if isinstance(answer, Rejection) else DONE


def delete_topic(scene: Scene) -> object:
    answer = scene.world.send(DeleteTopic(topic="t"))
    return answer if isinstance(answer, Rejection) else DONE


ACTS: dict[str, tuple[Callable[[Scene], object], int]] = {
    # what is done, and the number of its column in the table
    "skipped": (lambda scene: skip(scene, THE_ENTRY + 1), 0),
    "cleared": (lambda scene: skip(scene, LATEST), 0),
    "records deleted": (delete_records, 0),
    "acknowledged": (lambda scene: scene.client.acknowledge((THE_ENTRY, THE_ENTRY)), 0),
    "moved beyond it": (lambda scene: scene.client.seek(THE_ENTRY + 1), 1),
    "moved to it": (lambda scene: scene.client.seek(THE_ENTRY), 2),
    "moved before it": (lambda scene: scene.client.seek(0), 2),
    "deleted": (lambda scene: scene.client.unsubscribe(), 3),
    "topic deleted": (delete_topic, 3),
}
MODULE = "exacta.core.subscriptions.progress"
TABLE = docstring_table(MODULE, "an entry that is")
CUMULATIVE = docstring_table(MODULE, "delivery has come to")
COMES = {
    # what a cell says: when a consumer gets the entry afterwards, unless delivery is in order; and if it is
    "passed over": (None, None),
    "gone": (None, None),
    "delivered": ("at once", "at once"),
    "delivered in its time": ("later", "at once"),
    "withheld": ("later", "later"),
}
UNTOUCHED = {"delayed": "delivered in its time", "withheld": "withheld"}
"""The cells of an entry that nothing happens to; in another place it is delivered."""
PLACES = [
    # the place, and whether the subscription is durable
    *(
        (place, durable)
        for place in ("not looked at", "with a consumer", "waiting", "delayed")
        for durable in (True, False)
    ),
    ("withheld", True),
]


@pytest.mark.parametrize("subscription_type", SubscriptionType)
@pytest.mark.parametrize(("place", "durable"), PLACES)
@pytest.mark.parametrize("act", [None, "skipped up to it", *ACTS])
def test_what_becomes_of_an_entry(
    world: World, act: str | None, place: str, subscription_type: SubscriptionType, durable: bool
) -> None:
    scene = Scene(world, subscription_type, place, durable=durable)
    if act in ACTS:
        do, column = ACTS[act]
        cell, disconnects = TABLE.rows[place][column], column > 0
    else:
        do, cell = (lambda scene: DONE if act is None else skip(scene, THE_ENTRY)), UNTOUCHED.get(place, "delivered")
        disconnects = False
    world.notices.clear()
    assert do(scene) == DONE
    world.check()
    assert world.notices == ([(ConsumerId(1), ConsumerClosed())] if disconnects else [])
    assert (cell == "gone") is not scene.dispatcher.exists()
    assert scene.comes() == COMES[cell][subscription_type in IN_ORDER]


@pytest.mark.parametrize("subscription_type", sorted(IN_ORDER))
@pytest.mark.parametrize(("come_to", "when", "cell"), CUMULATIVE.cells())
def test_what_is_acknowledged_cumulatively_is_a_matter_of_order(
    world: World, come_to: str, when: str, cell: str, subscription_type: SubscriptionType
) -> None:
    dispatcher, client, handle = Dispatcher(world, subscription_type), Consumer(world), world.handle()
    for _ in range(4):
        client.write()
    consumer = dispatcher.connect(permits=100)
    dispatcher.pump()
    assert client.acknowledge_before(3, inside=handle, consumer_id=consumer) == DONE
    if come_to == "a place before it":
        dispatcher.disconnect(consumer)
        consumer = dispatcher.connect(permits=100)
        assert dispatcher.pump() == []
    client.write()
    world.notices.clear()
    if when == "with an abort":
        dispatcher.pump()
        assert handle.end(commit=False) == DONE
    elif when == "the consumer asks for all again":
        assert dispatcher.redeliver(consumer) == DONE
    is_closed = world.notices == [(consumer, ConsumerClosed())]
    offset = world.state.partitions[dispatcher.key[0]].next_offset - 1
    behind = [] if when == "with an abort" else [offset]
    assert is_closed is (cell == "back to the position" and when == "with an abort")
    if is_closed:
        dispatcher.connect(permits=100)
    found = [each.base for _, each in dispatcher.pump()]
    match cell:
        case "goes on":
            assert found == ([0, 1, 2, 3, 4] if when == "with an abort" else behind)
        case "waits for the end" | "back to the position, and waits":
            assert found == []
            assert handle.end(commit=False) == DONE
            assert [each.base for _, each in dispatcher.pump()] == [0, 1, 2, 3, 4]
        case "back to the position":
            assert found == [0, 1, 2, 3, 4]
        case other:
            raise AssertionError(other)
    world.check()
