"""A broker among the others: what it announces, whom it sees, when it is out of touch, one node id for two brokers."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from exacta.ports.cluster import Node
from exacta.ports.following import Leader
from exacta.ports.journal import Failed
from exacta.ports.shared import Appended, BrokerSeen, Ledger, SharedBroker, Superseded
from exacta.server.cluster.nodes import ENTRY_TICKS, LIVES_MS, PATIENCE, TICK_S, About, AnnouncedCluster, Knowledge
from tests.engine.rig import ManualLoop

TICK_MS = int(TICK_S * 1000)
ME = About({"PLAINTEXT": ("one.example", 9092)}, rack="a")
OTHER = About({"PLAINTEXT": ("two.example", 9092)}, rack="b")


class Room:
    """The part of a ledger in which brokers announce themselves; it answers at once, later, or never."""

    def __init__(self, loop: ManualLoop) -> None:
        self.loop = loop
        self.heard: list[SharedBroker] = []
        self.others: list[BrokerSeen] = []
        self.denies: Callable[[], bool] = lambda: False
        self.answers = True
        self.held: list[Callable[[], None]] = []

    def announce(self, broker: SharedBroker, done: Callable[[Any], None]) -> None:
        self.heard.append(broker)
        self._answer(done, Superseded(0) if self.denies() else Appended())

    def read_brokers(self, done: Callable[[Any], None]) -> None:
        me = [BrokerSeen(self.heard[-1], 0)] if self.heard else []
        self._answer(done, sorted([*me, *self.others]))

    def _answer(self, done: Callable[[Any], None], answer: object) -> None:
        if self.answers:
            self.loop.call_soon(done, answer)
        else:
            self.held.append(lambda: done(answer))


class Rig:
    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.room = Room(self.loop)
        self.touches: list[bool] = []
        self.refusals: list[str] = []
        self.changes = 0
        self.entered = 0
        self.cluster = AnnouncedCluster(
            1, "mine", ME, self.loop, touched=self.touches.append, refused=self.refusals.append
        )
        self.cluster.on_change(self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def _entered(self) -> None:
        self.entered += 1

    def begin(self) -> None:
        room: Any = self.room
        ledger: Ledger = room
        self.cluster.begin(ledger, self._entered)
        self.loop.settle()

    def tick(self, times: int = 1) -> None:
        self.loop.pass_time(TICK_MS * times)


def seen(node_id: int, about: About | bytes = OTHER, age_ms: int = 0) -> BrokerSeen:
    told = about if isinstance(about, bytes) else msgspec.json.encode(about)
    return BrokerSeen(SharedBroker(node_id, f"instance of {node_id}", told, 0, 0), age_ms)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def ids(nodes: Sequence[Node]) -> list[int]:
    return [each.node_id for each in nodes]


def test_a_broker_announces_itself_each_second_with_what_it_knows(rig: Rig) -> None:
    rig.begin()
    rig.cluster.knows(lambda: Knowledge(catalog=7, position=99))
    rig.tick(8)
    assert len(rig.room.heard) == 3
    first, *_, last = rig.room.heard
    assert (first.catalog, first.position) == (0, 0)
    assert (last.node_id, last.instance, last.catalog, last.position) == (1, "mine", 7, 99)
    assert msgspec.json.decode(last.about, type=About) == ME


def test_the_others_are_there_while_they_announce_themselves_and_a_change_is_told(rig: Rig) -> None:
    rig.room.others = [seen(0), seen(3, age_ms=60_000 - 1), seen(2, b"what another version says")]
    rig.begin()
    assert ids(rig.cluster.nodes) == [0, 1, 2]
    assert rig.cluster.nodes[0] == Node(0, "b", {"PLAINTEXT": ("two.example", 9092)})
    assert rig.cluster.nodes[2] == Node(2, None, {})
    assert rig.changes == 1
    rig.tick()
    assert rig.changes == 1
    rig.room.others = []
    rig.tick()
    assert (ids(rig.cluster.nodes), rig.changes) == ([1], 2)


def test_the_leader_is_a_broker_that_lives_and_never_this_one_unless_it_leads(rig: Rig) -> None:
    rig.room.others = [seen(2)]
    rig.begin()
    told = rig.changes
    for leader, expected in ((Leader(2, 5), 2), (Leader(1, 6), None), (Leader(9, 7), None), (None, None)):
        rig.cluster.led(leader, leads=False)
        found = rig.cluster.leader
        assert (None if found is None else found.node_id) == expected
        assert not rig.cluster.leads
    rig.cluster.led(Leader(1, 8), leads=True)
    assert rig.cluster.leads
    assert rig.cluster.leader == Node(1, "a", {"PLAINTEXT": ("one.example", 9092)})
    assert rig.changes == told + 3  # 2, nobody, itself


def test_a_new_leader_is_announced_at_the_next_tick(rig: Rig) -> None:
    rig.begin()
    rig.tick()
    before = len(rig.room.heard)
    rig.cluster.led(Leader(1, 1), leads=True)
    rig.tick()
    assert len(rig.room.heard) == before + 1


def test_a_broker_that_hears_nothing_for_a_second_is_out_of_touch_until_it_hears_again(rig: Rig) -> None:
    rig.begin()
    assert rig.touches == [True]
    rig.room.answers = False
    rig.tick(PATIENCE)
    assert rig.touches == [True]
    rig.tick()
    assert rig.touches == [True, False]
    rig.tick(20)
    assert len(rig.room.held) == 1  # one call waits, however long
    rig.room.answers = True
    rig.room.held.pop()()
    rig.loop.settle()
    rig.tick()
    assert rig.touches == [True, False, True]


def test_calls_that_fail_are_no_touch(rig: Rig) -> None:
    rig.begin()
    rig.room.answers = False
    for _ in range(PATIENCE + 1):
        rig.tick()
        while rig.room.held:
            rig.room.held.clear()
            rig.cluster._have_read(rig.cluster._round, Failed("the connection was lost"))
    assert rig.touches == [True, False]


def test_a_process_that_was_paused_is_not_out_of_touch_for_that(rig: Rig) -> None:
    rig.begin()
    rig.loop.now_ms += 60_000  # it had no turn
    rig.tick()
    assert rig.touches == [True]


def test_a_node_id_that_a_killed_instance_has_is_waited_for(rig: Rig) -> None:
    gone = iter([True] * 10)
    rig.room.denies = lambda: next(gone, False)
    rig.begin()
    rig.tick(5)
    assert rig.entered == 0
    rig.tick(10)
    assert (rig.entered, rig.refusals) == (1, [])


def test_a_node_id_that_a_living_broker_has_is_refused(rig: Rig) -> None:
    rig.room.denies = lambda: True
    rig.begin()
    rig.tick(ENTRY_TICKS + 1)
    assert rig.refusals == ["another broker has the node id 1: give each broker of a cluster its own (--node-id)"]
    heard = len(rig.room.heard)
    rig.tick(20)
    assert (len(rig.room.heard), rig.entered) == (heard, 0)


def test_a_broker_whose_place_another_has_taken_meanwhile_is_refused_at_once(rig: Rig) -> None:
    rig.begin()
    rig.room.denies = lambda: True
    rig.tick(4)
    assert len(rig.refusals) == 1


def test_an_answer_of_a_ledger_that_was_left_is_not_heard(rig: Rig) -> None:
    rig.begin()
    rig.room.answers = False
    rig.tick()
    rig.cluster.stop()
    assert rig.touches == [True, False]
    rig.room.held.pop()()
    rig.tick(4)
    assert rig.touches == [True, False]


def test_the_callbacks_of_a_role_go_with_it(rig: Rig) -> None:
    rig.begin()
    rig.cluster.forget_callbacks()
    before = rig.changes
    rig.room.others = [seen(2)]
    rig.tick()
    assert rig.changes == before


def test_the_lead_is_left_to_the_named_broker_while_it_lives_and_only_in_that_epoch(rig: Rig) -> None:
    def names(successor: tuple[int, int] | None, age_ms: int = 0) -> None:
        leaving = About({"PLAINTEXT": ("two.example", 9092)}, successor=successor)
        rig.room.others = [seen(2, leaving), seen(3, age_ms=age_ms)]
        rig.tick()

    rig.begin()
    rig.cluster.led(Leader(2, 5), leads=False)
    for successor, age_ms, waits in (
        (None, 0, False),
        ((5, 3), 0, True),
        ((5, 3), LIVES_MS, False),
        ((5, 1), 0, False),  # this one
        ((4, 3), 0, False),
        ((5, 9), 0, False),
    ):
        names(successor, age_ms)
        assert rig.cluster.must_wait == waits, successor
    names((5, 3))
    rig.cluster.led(Leader(3, 6), leads=False)
    assert not rig.cluster.must_wait


def test_a_leader_names_its_successor_until_it_begins_again(rig: Rig) -> None:
    rig.begin()
    rig.cluster.name_successor(5, 2)
    rig.tick()
    assert msgspec.json.decode(rig.room.heard[-1].about, type=About).successor == (5, 2)
    rig.begin()
    assert msgspec.json.decode(rig.room.heard[-1].about, type=About) == ME
