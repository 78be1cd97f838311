"""One broker of a cluster: its roles, as the table in `roles.py` has them, carried out from start to stop.

It stands beside `exacta.server.server.Server`, which is a broker alone, and is made of the same pieces.

Theory of operation. The doors are bound once, for the life of the process. Each role that serves clients has a log of
its own (the replica of a follower, or the engine of a leader), and a broker over it; with the role they go, and all
connections of clients with them, so that no client holds what the role knew. A failure of what is shared is no end of
the process: everything in memory is dropped, and the next beginning reads what PostgreSQL has. What a dropped role
still calls back is told by its number, and is not heard.

A start fails in one line where it would fail again: PostgreSQL refuses it, or cannot be reached, another broker has the
node id, or the log is damaged. Later, what cannot be reached is tried again each `REST_S`.
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from exacta.config.configuration import Configuration
from exacta.engine.engine import Engine, EngineFailed
from exacta.engine.replica import Replica
from exacta.front.doors import Door
from exacta.ports.following import LedJournal
from exacta.ports.journal import Failed, JournalDamaged, JournalError
from exacta.ports.log import Log
from exacta.security.first_user import FirstUserToken
from exacta.server.cluster.belongings import Belongings
from exacta.server.cluster.figures import ClusterFigures
from exacta.server.cluster.handing_over import hand_over
from exacta.server.cluster.making import Making
from exacta.server.cluster.nodes import SEEN_S, AnnouncedCluster
from exacta.server.cluster.opening import SharedAway, open_shared, told
from exacta.server.cluster.roles import BrokerRole, Happened, next_role, serves_clients
from exacta.server.connections import Connections
from exacta.server.errors import ServerError
from exacta.server.progress import Progress
from exacta.server.reception import Reception
from exacta.server.seams import Seams
from exacta.server.serving import Serving

logger = logging.getLogger("exacta.server")

REST_S: Final = 1.0
"""The time between a failure and the next beginning."""
YIELD_S: Final = 5.0
"""A broker that has let another lead takes the lead no sooner than this, unless another had it meanwhile."""
_DRAIN_SECONDS: Final = 5.0


class ClusterServer:
    """One broker of a cluster on one loop. Call everything on the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        configuration: Configuration,
        data: Path,
        doors: Sequence[Door],
        seams: Seams = Seams(),  # noqa: B008  # frozen
        *,
        begins: Callable[[], None] = lambda: None,
    ) -> None:
        """`data` is a cache. `begins` is called once the doors are bound."""
        self.failure: asyncio.Future[ServerError] = loop.create_future()
        """The future that is done when this broker must not go on."""
        self.role = BrokerRole.BEGINNING
        self.first_user: FirstUserToken | None = None
        """The token that makes the first user; None: none is needed."""
        self.reception = Reception(doors, seams.fronts, configuration)
        self._loop = loop
        self._configuration = configuration
        self._data = data
        self._begins = begins
        self._progress = Progress()
        self._connections = Connections(loop, configuration, self.reception.is_early)
        self._connections.is_open = False
        self._instance = uuid.uuid4().hex
        self._making = Making(
            loop=loop,
            configuration=configuration,
            data=data,
            seams=seams,
            clock=seams.clock(),
            reception=self.reception,
            connections=self._connections,
        )
        self._open_store = seams.shared(self._making.place(self._instance))
        self._cluster: AnnouncedCluster | None = None
        self._figures: ClusterFigures | None = None
        self._number = 0
        """The number of the present role: what an earlier one calls back is not heard."""
        self._follows = asyncio.Event()
        """Set once this broker has followed, or cannot."""
        self._ended = asyncio.Event()
        self._beginning: asyncio.Task[None] | None = None
        self._handing: asyncio.Task[None] | None = None
        self._has = Belongings()
        self._resigned = False
        """True: this broker has given up its lead by itself, and what its journal says of that is no failure."""
        self._serving: Serving | None = None
        self._listens = False
        self._asks = False
        """True: it waits for the lead."""
        self._yields = False
        """True: it has let another lead, and is to follow for a while."""

    @property
    def cluster(self) -> AnnouncedCluster:
        """The brokers of the cluster, once the server is open."""
        assert self._cluster is not None
        return self._cluster

    @property
    def figures(self) -> ClusterFigures:
        """The figures that operators are shown, once the server is open."""
        assert self._figures is not None
        return self._figures

    @property
    def engine(self) -> Log:
        """The log as the present role has it, once the server is open."""
        assert self._has.log is not None
        return self._has.log

    @property
    def position(self) -> int:
        """Up to where this broker knows the log."""
        return self._has.position

    # --- the beginning and the end ------------------------------------------------------------------------------------

    def read_certificates_again(self) -> None:
        """See `Reception`."""
        self.reception.read_certificates_again(self._loop.time())

    async def open_in_sight(self) -> None:
        """Bind the ports, and follow the log. Raises ServerError, and leaves nothing behind then."""
        try:
            self.reception.bind()
            self._cluster = self._making.cluster(self._instance, touched=self._touched, refused=self._refuse)
            self._progress.cluster = self._figures = self._making.figures(self._cluster, self._has, self.move)
            await self.reception.start_early(self._making.host(self._progress))
            self._begins()
            self._enter(BrokerRole.BEGINNING)
            await self._follows.wait()
            if self.failure.done():
                raise self.failure.result()
            if len(self.cluster.nodes) > 1:
                # A client that comes before the others know this broker would be told by them that there is none.
                await asyncio.sleep(SEEN_S)
        except BaseException:
            self.abandon()
            raise

    async def start(self) -> None:
        """Let clients in. Raises ServerError."""
        assert self._serving is not None
        self._serving.start()
        try:
            await self.reception.start(self._making.host(self._progress), self._serving.broker)
        except ServerError:
            self.abandon()
            raise
        self._listens = True
        self._let_in()

    async def stop(self) -> None:
        """Stop cleanly: a leader makes durable what has gathered, answers, and lets another lead at once."""
        self.reception.close()
        self._connections.stop_taking_requests()
        self._happened(Happened.STOP)
        await self._ended.wait()
        if self._beginning is not None:
            await asyncio.wait((self._beginning,))  # a thread may still read the log
        await self._connections.close(_DRAIN_SECONDS)

    def abandon(self) -> None:
        """Drop everything, as a crash would."""
        self.reception.close()
        self.role = BrokerRole.ENDED
        self._end_service()
        self._drop()
        self._ended.set()
        self._connections.abort()

    def move(self) -> None:
        """Let another broker lead, if this one does."""
        self._happened(Happened.MOVE)

    # --- the roles ----------------------------------------------------------------------------------------------------

    def _happened(self, what: Happened, reason: str = "") -> None:
        before, role = self.role, next_role(self.role, what)
        if role is before:
            return
        values = {"before": before.value, "role": role.value, "what": what.value, "reason": reason}
        text = "this broker is %(role)s, after %(before)s (%(what)s)" + (": %(reason)s" if reason else "")
        logger.log(logging.WARNING if reason else logging.INFO, text, values)
        self.role = self.figures.role = role
        if self._has.replica is not None and what in (Happened.HAS_LEAD, Happened.STOP):
            self._has.replica.close(lambda: None)  # who waits for records is answered
        self._end_service()
        if role in (BrokerRole.LEAVING, BrokerRole.STOPPING):
            self._connections.part(lambda each: each.stop_taking_requests())
        elif what in (Happened.HAS_LEAD, Happened.FINISHED, Happened.STOP):
            self._connections.part(lambda each: each.hand_over())
        else:
            self._connections.part(lambda each: each.abort())
        self._enter(role)

    def _end_service(self) -> None:
        self._number += 1
        self._connections.is_open = False
        if self._serving is not None:
            self._serving.stop()
            self._serving = None
        self.reception.withdraw()
        if self._cluster is not None:
            self._cluster.forget_callbacks()

    def _enter(self, role: BrokerRole) -> None:
        if role in (BrokerRole.BEGINNING, BrokerRole.RESTING, BrokerRole.ENDED):
            self._drop()
        match role:
            case BrokerRole.BEGINNING:
                self._beginning = self._loop.create_task(self._begin(self._beginning))
            case BrokerRole.FOLLOWING:
                self._follow()
            case BrokerRole.LEADING:
                self._lead()
            case BrokerRole.RESTING:
                self._loop.call_later(REST_S, self._unless_late(lambda: self._happened(Happened.RESTED)))
            case BrokerRole.LEAVING | BrokerRole.STOPPING:
                self._yields = role is BrokerRole.LEAVING
                self._finish()
            case BrokerRole.ENDED:
                self._ended.set()

    def _unless_late(self, call: Callable[[], None]) -> Callable[[], None]:
        number = self._number
        return lambda: call() if number == self._number else None

    def _drop(self) -> None:
        """Drop all that the role had in memory, and the sessions with it."""
        if self._cluster is not None:
            self._cluster.led(None, leads=False)
            self._cluster.stop()
        if self._beginning is not None:
            self._beginning.cancel()
        self._has.drop()
        self._progress.engine, self._resigned = None, False

    def _refuse(self, reason: str) -> None:
        """Go on no more: another start would end in the same way."""
        if not self.failure.done():
            self.failure.set_result(ServerError(reason))
        self._follows.set()
        self._happened(Happened.REFUSED, reason)

    def _failed(self, reason: str) -> None:
        if self._follows.is_set():
            self._happened(Happened.FAILED, reason)
        else:
            self._refuse(reason)

    # --- carrying them out --------------------------------------------------------------------------------------------

    async def _begin(self, earlier: "asyncio.Task[None] | None") -> None:
        if earlier is not None:
            await asyncio.wait((earlier,))
        self._progress.begins()
        try:
            opened = await open_shared(self._open_store, self.cluster, self._configuration, self.reception)
        except (ServerError, JournalDamaged) as error:
            self._refuse(str(error))
        except msgspec.DecodeError as error:
            self._refuse(f"the log holds what this version cannot read: {error}")
        except (SharedAway, JournalError, OSError) as error:
            self._failed(told(error))
        except Exception as defect:  # else nobody would hear of it, and a start would wait for ever
            logger.exception("the log could not be opened")
            self._refuse(repr(defect))
        else:
            self._has.opened = opened
            self._happened(Happened.READ)

    def _follow(self) -> None:
        opened = self._has.opened
        assert opened is not None
        self._asks = False
        replica = self._has.replica = self._making.replica(opened, self._engine_failed)
        opened.follower.on_leader(self._note_leader)
        self.cluster.knows(self.figures.look)
        self._note_leader()
        self._serve(replica)
        if self.role is BrokerRole.FOLLOWING:
            self._follows.set()
            if self._yields:
                self._loop.call_later(YIELD_S, self._unless_late(self._ask_for_lead))
            else:
                self._ask_for_lead()

    def _note_leader(self) -> None:
        assert self._has.opened is not None
        leader = self._has.opened.follower.leader
        self.cluster.led(leader, leads=False)
        if self._yields and leader is not None and leader.node_id != self.cluster.node_id:
            self._ask_for_lead()

    def _ask_for_lead(self) -> None:
        assert self._has.opened is not None
        if self._asks:
            return
        self._asks, self._yields, number = True, False, self._number

        def led(journal: LedJournal | Failed) -> None:
            if number != self._number:
                if not isinstance(journal, Failed):
                    journal.close()
            elif isinstance(journal, Failed):
                self._failed(journal.reason)
            else:
                self._has.journal = journal
                self._happened(Happened.HAS_LEAD)

        self._has.opened.follower.lead(led, lambda: self.cluster.must_wait)

    def _lead(self) -> None:
        replica, journal = self._has.replica, self._has.journal
        assert replica is not None
        assert journal is not None
        engine = self._has.engine = self._making.engine(replica, journal, self._engine_failed)
        self._has.replica = None
        self.figures.leads_taken += 1
        self.cluster.knows(self.figures.look)
        self.cluster.led(None, leads=True)
        self._serve(engine)

    def _finish(self) -> None:
        """Make durable what has gathered, and let another broker lead."""
        engine = self._has.engine
        assert engine is not None

        def finished() -> None:
            self._handing = self._loop.create_task(self._hand_over(self._number))

        with contextlib.suppress(JournalDamaged):  # the engine has failed, and has said so
            engine.close(self._unless_late(finished))

    async def _hand_over(self, number: int) -> None:
        opened, journal = self._has.opened, self._has.journal
        assert opened is not None
        assert journal is not None
        self._resigned = True
        if len(self.cluster.nodes) > 1:
            await hand_over(opened.ledger, journal, lambda leader: self.cluster.led(leader, leads=False))
        if number == self._number:
            self._happened(Happened.FINISHED)

    def _serve(self, log: Engine | Replica) -> None:
        """Let a broker over this log have the clients."""
        assert self._has.opened is not None
        try:
            self._serving, self.first_user = self._making.serving(log, self._has.opened, self.cluster)
        except ServerError as error:
            self._refuse(str(error))
            return
        self._progress.has_recovered(log)
        if self._listens:
            self._serving.start()
            self.reception.serve(self._making.host(self._progress), self._serving.broker)
            self._let_in()

    # --- callbacks ----------------------------------------------------------------------------------------------------

    def _engine_failed(self, failure: EngineFailed) -> None:
        if failure.another_may_lead and not self._resigned:
            self._happened(Happened.FAILED, str(failure))
        elif not self._resigned:
            self._refuse(str(failure))

    def _touched(self, in_touch: bool) -> None:
        """Close the connections of a broker that is out of touch, so that its clients look elsewhere."""
        self._let_in()
        if not in_touch and serves_clients(self.role, in_touch=True):  # else they end already, once all is sent
            self._connections.part(lambda each: each.abort())

    def _let_in(self) -> None:
        self._connections.is_open = self._listens and serves_clients(self.role, in_touch=self.cluster.in_touch)
