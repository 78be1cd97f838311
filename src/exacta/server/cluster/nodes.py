"""The brokers of a cluster, as each of them announces itself in the ledger. Implements `exacta.ports.cluster.Cluster`.

Owns the announcements of this broker, what it knows of the others, and whether it is in touch with the ledger. Does not
own who leads: its owner tells (`led`).

Theory of operation. Each `TICK_S` the brokers are read, and every fourth time this broker announces itself before. A
broker that has announced itself within `LIVES_MS` lives. While no answer comes back for `PATIENCE` ticks, this broker
is out of touch: others may lead meanwhile, and its clients are better off elsewhere. Ticks count, and not the time: a
process that was paused finds one late tick, and the answers right behind it.

Two brokers with one node id are told apart by their instances, which each start draws at random. An instance that was
killed is still there for a moment, so that the next start asks again for `ENTRY_TICKS` ticks before it gives up.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Struct, structs

from exacta.ports.cluster import Node, Unmovable
from exacta.ports.following import Leader
from exacta.ports.journal import Failed
from exacta.ports.scheduler import Scheduler, TimerHandle
from exacta.ports.shared import Appended, BrokerSeen, Ledger, SharedBroker, Superseded
from exacta.readmodel.cluster import ClusterStatus

TICK_S: Final = 0.25
ANNOUNCE_EVERY: Final = 4
PATIENCE: Final = 4
"""The ticks without an answer after which a broker is out of touch: a second."""
LIVES_MS: Final = 5_000
SEEN_S: Final = 2 * TICK_S
"""After this time the other brokers have read of one that has announced itself."""
NAMED_S: Final = 4 * TICK_S
ENTRY_TICKS: Final = 4 * 15
"""The ticks for which a broker asks for its node id, while another instance has it: fifteen seconds."""


class About(Struct, frozen=True, omit_defaults=True):
    """Tell the others of a broker. Fields are only added, with defaults."""

    addresses: Mapping[str, tuple[str, int]]
    """The host and port of each of its doors, by the door's name."""
    rack: str | None = None
    release: str = ""
    format: int = 0
    """The newest form of the log that it can write."""
    successor: tuple[int, int] | None = None
    """The epoch in which this broker leads, and who is to lead next: the others leave the lead to that broker."""


class Knowledge(Struct, frozen=True):
    """The part of the shared log that a broker knows, as it announces it."""

    catalog: int
    position: int


class Operated(Protocol):
    """The part of `Cluster` that is for operators."""

    def status(self) -> ClusterStatus:
        """See `Cluster`."""

    def move(self, epoch: int, to: int | None) -> Unmovable | None:
        """See `Cluster`."""


logger = logging.getLogger("exacta.server")
_decode_about = msgspec.json.Decoder(About).decode


class AnnouncedCluster:
    """The cluster as one broker sees it. Every method is called on the event-loop thread.

    `known` is asked at each announcement. `touched` hears whether this broker is in touch, whenever that changes.
    `refused` hears, at most once, that another broker has its node id.
    """

    def __init__(
        self,
        node_id: int,
        instance: str,
        about: About,
        scheduler: Scheduler,
        *,
        touched: Callable[[bool], None],
        refused: Callable[[str], None],
    ) -> None:
        self._node_id = node_id
        self._instance = instance
        self._about = about
        self._operated: Operated | None = None
        self._me = _node(node_id, about)
        self._scheduler = scheduler
        self._touched = touched
        self._refused = refused
        self._changed: list[Callable[[], None]] = []
        self._ledger: Ledger | None = None
        self._known: Callable[[], Knowledge] = lambda: Knowledge(0, 0)
        self._entered: Callable[[], None] | None = None
        """Called once the node id is this broker's; None: that was done."""
        self._leads = False
        self._leader: Leader | None = None
        self._brokers: Sequence[BrokerSeen] = ()
        self._nodes: tuple[Node, ...] = (self._me,)
        self._round = 0
        """The number of the ledger that is used: answers of an earlier one come too late."""
        self._ticks = 0
        self._silent = 0
        self._denied = 0
        self._is_asking = False
        self._in_touch = False
        self._timer: TimerHandle | None = None

    # --- what fronts ask ----------------------------------------------------------------------------------------------

    @property
    def node_id(self) -> int:
        """See `Cluster`."""
        return self._node_id

    @property
    def leads(self) -> bool:
        """See `Cluster`."""
        return self._leads

    @property
    def leader(self) -> Node | None:
        """See `Cluster`."""
        if self._leads:
            return self._me
        leader = self._leader
        if leader is None or leader.node_id == self._node_id:
            return None
        return next((each for each in self._nodes if each.node_id == leader.node_id), None)

    @property
    def nodes(self) -> Sequence[Node]:
        """See `Cluster`."""
        return self._nodes

    def on_change(self, changed: Callable[[], None]) -> None:
        """See `Cluster`."""
        self._changed.append(changed)

    def forget_callbacks(self) -> None:
        """Call back nobody any more that `on_change` was given: the fronts of a role are gone with it."""
        self._changed.clear()

    def status(self) -> ClusterStatus:
        """See `Cluster`."""
        assert self._operated is not None
        return self._operated.status()

    def move(self, epoch: int, to: int | None) -> Unmovable | None:
        """See `Cluster`."""
        assert self._operated is not None
        return self._operated.move(epoch, to)

    # --- what operators ask -------------------------------------------------------------------------------------------

    @property
    def brokers(self) -> Sequence[BrokerSeen]:
        """All brokers that are not gone, as they were read last, by node id."""
        return self._brokers

    @property
    def in_touch(self) -> bool:
        """True if this broker has lately heard from the ledger."""
        return self._in_touch

    @property
    def must_wait(self) -> bool:
        """True if the present leader has named another broker, which lives, as its successor."""
        if self._leader is None:
            return False
        named = {about_of(each.broker).successor for each in self._brokers if each.age_ms < LIVES_MS}
        others = [each.node_id for each in self._nodes if each.node_id != self._node_id]
        return any((self._leader.epoch, each) in named for each in others)

    # --- what the server does -----------------------------------------------------------------------------------------

    def begin(self, ledger: Ledger, entered: Callable[[], None]) -> None:
        """Announce this broker in this ledger from now on. `entered` hears when its node id is its own."""
        self.stop()
        self._ledger, self._entered = ledger, entered
        self._about = structs.replace(self._about, successor=None)
        self._ticks = self._silent = self._denied = 0
        self._tick()

    def operated(self, by: Operated) -> None:
        """Let this answer what operators ask."""
        self._operated = by

    def name_successor(self, epoch: int, node_id: int) -> None:
        """Tell the others, as the leader in this epoch, who is to lead next: they have read it after `NAMED_S`."""
        self._about = structs.replace(self._about, successor=(epoch, node_id))
        self._ticks = 0

    def knows(self, known: Callable[[], Knowledge]) -> None:
        """Announce what this gives from now on."""
        self._known = known

    def led(self, leader: Leader | None, *, leads: bool) -> None:
        """Note who leads, as this broker knows it now."""
        before = self.leader, self._leads
        self._leader, self._leads = leader, leads
        if (self.leader, self._leads) != before:
            self._tell()
        if self._ledger is not None:
            self._ticks = 0  # the others hear of it at the next tick

    def stop(self) -> None:
        """Announce nothing any more, and take no answer."""
        self._round += 1
        self._ledger, self._entered = None, None
        self._is_asking = False
        self._known = lambda: Knowledge(0, 0)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._touch(in_touch=False)

    # --- the ticks ----------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        ledger = self._ledger
        if ledger is None:
            return
        self._timer = self._scheduler.call_later(TICK_S, self._tick)
        self._silent += 1
        if self._silent > PATIENCE:
            self._touch(in_touch=False)
        if self._is_asking:
            return
        self._is_asking = True
        number = self._round
        if self._ticks % ANNOUNCE_EVERY == 0 or self._entered is not None:
            known = self._known()
            me = SharedBroker(
                self._node_id, self._instance, msgspec.json.encode(self._about), known.catalog, known.position
            )
            ledger.announce(me, lambda answer: self._announced(number, answer))
        else:
            ledger.read_brokers(lambda answer: self._have_read(number, answer))
        self._ticks += 1

    def _announced(self, number: int, answer: "Appended | Superseded | Failed") -> None:
        if number != self._round:
            return
        if isinstance(answer, Superseded):
            self._is_asking = False
            self._deny()
            return
        if isinstance(answer, Failed):
            self._is_asking = False
            return
        entered, self._entered = self._entered, None
        assert self._ledger is not None
        self._ledger.read_brokers(lambda found: self._have_read(number, found))
        if entered is not None:
            entered()

    def _deny(self) -> None:
        """Wait for the end of an instance that was killed, but only at the start: later another has come."""
        self._denied += 1
        if self._denied == 1 and self._entered is not None:
            logger.info("another broker has the node id %d: waiting for its end", self._node_id)
        if self._entered is None or self._denied > ENTRY_TICKS:
            self.stop()
            self._refused(
                f"another broker has the node id {self._node_id}: give each broker of a cluster its own (--node-id)"
            )

    def _have_read(self, number: int, answer: "Sequence[BrokerSeen] | Failed") -> None:
        if number != self._round:
            return
        self._is_asking = False
        if isinstance(answer, Failed):
            return
        self._silent = 0
        before = self.leader, self._nodes
        self._brokers = answer
        living = [each.broker for each in answer if each.age_ms < LIVES_MS and each.broker.node_id != self._node_id]
        nodes = [self._me, *(_node_of(each) for each in living)]
        self._nodes = tuple(sorted(nodes, key=lambda each: each.node_id))
        self._touch(in_touch=True)
        if (self.leader, self._nodes) != before:
            self._tell()

    def _touch(self, *, in_touch: bool) -> None:
        if in_touch != self._in_touch:
            self._in_touch = in_touch
            self._touched(in_touch)

    def _tell(self) -> None:
        for changed in tuple(self._changed):
            changed()


def about_of(broker: SharedBroker) -> About:
    """Return what a broker has told of itself; what cannot be read tells nothing."""
    try:
        return _decode_about(broker.about)
    except msgspec.DecodeError:
        return About({})


def _node_of(broker: SharedBroker) -> Node:
    return _node(broker.node_id, about_of(broker))


def _node(node_id: int, about: About) -> Node:
    return Node(node_id, about.rack, dict(about.addresses))
