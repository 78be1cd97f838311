"""The places of a message in delivery: the table of `delivering.py`, cell by cell, of a Shared subscription."""

import pytest

from exacta.core.ids import ConsumerId, Offset
from exacta.core.replies import DONE
from exacta.core.values.subscriptions import SubscriptionType
from tests.core.subscriptions.consumer import Consumer
from tests.core.subscriptions.delivering import Dispatcher
from tests.core.world import Handle, World
from tests.docstring_tables import docstring_table

TABLE = docstring_table("exacta.core.subscriptions.delivering", "message \\ input")


def in_place(dispatcher: Dispatcher, place: str) -> Handle | None:
    """Bring entry 0 into this place; return the transaction in which it is pending, if it is withheld."""
    world = dispatcher.world
    if place == "delayed":
        dispatcher.deliver_at_ms[0] = world.now_ms + 50
    Consumer(world).write()
    consumer = dispatcher.connect(permits=0 if place == "not looked at" else 1)
    dispatcher.pump()
    if place == "waiting":
        dispatcher.permit(consumer, -100)
        dispatcher.redeliver(consumer)
    if place != "withheld":
        return None
    handle = world.handle()
    assert Consumer(world).acknowledge((0, 0), inside=handle) == DONE
    return handle


def place_of(dispatcher: Dispatcher) -> str:
    delivery = dispatcher.delivery
    assert delivery is not None
    state = Consumer(dispatcher.world).state_of(0)
    if state == "acknowledged":
        return state
    entry = delivery.entries.get(Offset(0))
    if entry is None:
        return "pending" if state.startswith("pending") else "not looked at"
    if entry.consumer is not None:
        return "with a consumer"
    if Offset(0) in delivery.waiting:
        return "waiting"
    return "delayed" if any(base == 0 for _, base in delivery.delayed) else "withheld"


@pytest.mark.parametrize(("place", "given", "cell"), TABLE.cells())
def test_every_cell(world: World, place: str, given: str, cell: str) -> None:
    dispatcher = Dispatcher(world, SubscriptionType.SHARED)
    handle = in_place(dispatcher, place)
    assert place_of(dispatcher) == place
    counted = 0
    match given:
        case "acknowledged":
            Consumer(world).acknowledge((0, 0))
        case "pending":
            Consumer(world).acknowledge((0, 0), inside=world.handle())
            if place == "delayed":
                assert place_of(dispatcher) == "delayed", "it is withheld once its time has come"
                world.pass_time(50)
        case "commit" | "abort":
            if handle is not None:
                handle.end(commit=given == "commit")
                counted = int(given == "abort")
        case "redeliver":
            dispatcher.permit(ConsumerId(1), -100)
            dispatcher.redeliver(ConsumerId(1))
            counted = int(place == "with a consumer")
        case _:
            dispatcher.connect()
            dispatcher.disconnect(ConsumerId(1))
    expected = {"-": place, "waits": "waiting"}.get(cell, cell)
    assert place_of(dispatcher) == expected
    world.check()
    if cell == "waits":
        assert dispatcher.delivery is not None
        assert dispatcher.delivery.entries[Offset(0)].redeliveries == (place == "waiting") + counted
