"""A database in memory: what outlives the sessions of all brokers, with the faults of a database server.

Theory of operation. A `DatabaseServer` plays one PostgreSQL server. Transactions are written to its log one after
another, each on the tables as the one before it has left them: so a claim comes before an append or behind it, as the
locks of the real ledger order them. Nobody sees what is only written. A transaction is committed when it is on the
disk, and on the standby where there is one. Then it is visible, and its caller is answered. A commit takes all before
it along. A transaction that has changed nothing, such as a refused one, only waits until those before it are visible:
it writes nothing, and so proves nothing of disk and standby.

The faults:
- *restart*: of what was written and not committed, the disk has kept a part. All sessions end.
- *failover*: the standby takes over. Of what was not acknowledged, it has received a part. Where it was no synchronous
  standby, it lacks something acknowledged, too. The old primary may live on for those who are connected to it.
- *cancelled wait*: what waits for the standby becomes visible without it. Its caller does not know. A later commit
  replicates it; before that, a failover takes it away.
- *away*: the standby does not answer, and nothing is committed.

A `DatabaseSession` is one connection. It holds the lead for as long as it lasts. A request may still arrive when its
caller has left the session, and is carried out then. When the server has ended the session, it is refused.
"""

from collections import deque
from collections.abc import Callable, Collection
from itertools import count
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from exacta.adapters.memory.tables import Tables
from exacta.adapters.memory.wire import DatabaseWire, after, at_once
from exacta.ports.journal import Failed
from exacta.ports.scheduler import Scheduler

T = TypeVar("T")
Reply: TypeAlias = Callable[[Any], object]
ACKNOWLEDGED = 100
"""The number of acknowledged commits that a failover can lose at most."""


class DatabaseSession:
    """One connection of a broker to a server, as the server sees it."""

    def __init__(
        self, server: "DatabaseServer", wire: DatabaseWire, hinted: Callable[[], object] | None = None
    ) -> None:
        self.server = server
        self.wire = wire
        self.hinted = hinted
        self.locks: set[int] = set()
        self.instance: str | None = None
        """The broker that has announced itself in this session."""
        self.is_refused = False
        """True if the server has ended it."""
        self._waiting: list[Reply] = []
        wire.on_lost.append(self._lose)

    def _lose(self) -> None:
        self.end(by_server=True)

    def serve(self, request: Callable[[Reply], object], reply: Reply) -> None:
        """Carry out a request that has arrived."""
        if self.is_refused or not self.server.is_up:
            reply(Failed("the database has closed the connection"))
            return
        self._waiting.append(reply)

        def answered(answer: object) -> None:
            if reply in self._waiting:
                self._waiting.remove(reply)
                reply(answer)

        request(answered)

    def end(self, *, by_server: bool) -> None:
        """End it: its locks are released. Callers are told if it is the server who ends it."""
        if self._lose in self.wire.on_lost:
            self.wire.on_lost.remove(self._lose)
        if by_server:
            self.is_refused = True
            waiting, self._waiting = self._waiting, []
            for reply in waiting:
                reply(Failed("the connection to the database was lost"))
        self.server.session_ended(self)


class Commit(Struct, eq=False):
    """A transaction that is written, and not committed yet."""

    tables: Tables
    answer: object
    reply: Reply
    writes: bool
    is_on_disk: bool = False


class DatabaseServer:
    """One server: its tables, the transactions on their way, and the sessions."""

    def __init__(self, scheduler: Scheduler, now_ms: Callable[[], int], tables: Tables) -> None:
        self.is_up = True
        self.standby_is_away = False
        self.commit_seconds: Callable[[], float] = at_once
        self.now_ms = now_ms
        self.visible = tables
        self.sessions: list[DatabaseSession] = []
        self._scheduler = scheduler
        self._acknowledged = deque([tables], maxlen=ACKNOWLEDGED)
        """The tables as the standby surely has them, after each commit."""
        self._unreplicated: list[Tables] = []
        """The tables after each commit that is visible here, and that the standby may lack."""
        self._commits: list[Commit] = []
        self._awaiting: list[tuple[DatabaseSession, Reply]] = []

    # --- what sessions ask --------------------------------------------------------------------------------------------

    def connect(self, wire: DatabaseWire, hinted: Callable[[], object] | None = None) -> DatabaseSession:
        """Return a session; all that it asks is refused while the server is down."""
        session = DatabaseSession(self, wire, hinted)
        self.sessions.append(session)
        return session

    def write(self, change: Callable[[Tables], tuple[Tables, object]], reply: Reply) -> None:
        """Write a transaction, and reply once it is committed."""
        before = self._commits[-1].tables if self._commits else self.visible
        tables, answer = change(before)
        commit = Commit(tables, answer, reply, writes=tables is not before)
        self._commits.append(commit)
        if commit.writes:
            after(self._scheduler, self.commit_seconds(), lambda: self._reach_disk(commit))
        else:
            self._answer_those_that_wrote_nothing()

    def await_lead(self, session: DatabaseSession, reply: Reply) -> None:
        """Reply once no session has the lock of the present leader."""
        self._awaiting.append((session, reply))
        self._wake_if_nobody_leads()

    def hint(self) -> None:
        """Tell all sessions that want to hear that there is more to read."""
        for session in self.sessions:
            if session.hinted is not None:
                session.wire.replies.carry(session.hinted)

    @property
    def living(self) -> Collection[str]:
        """The instances of brokers that have a session."""
        return {session.instance for session in self.sessions if session.instance is not None}

    def session_ended(self, session: DatabaseSession) -> None:
        """Forget a session."""
        if session in self.sessions:
            self.sessions.remove(session)
        if session.is_refused:
            self._awaiting = [each for each in self._awaiting if each[0] is not session]
        self._wake_if_nobody_leads()

    def _wake_if_nobody_leads(self) -> None:
        if self.is_up and not any(self.visible.lock_key in session.locks for session in self.sessions):
            awaiting, self._awaiting = self._awaiting, []
            for _, reply in awaiting:
                reply(None)

    # --- commits ------------------------------------------------------------------------------------------------------

    def _reach_disk(self, commit: Commit) -> None:
        commit.is_on_disk = True
        if commit in self._commits and not self.standby_is_away:
            self._commit_to(commit)

    def _commit_to(self, last: Commit) -> None:
        self._unreplicated.clear()
        to = self._commits.index(last) + 1
        committed, self._commits = self._commits[:to], self._commits[to:]
        for commit in committed:
            self._acknowledged.append(commit.tables)
            self._show(commit, commit.answer)

    def _show(self, commit: Commit, answer: object) -> None:
        self.visible = commit.tables
        commit.reply(answer)
        self._answer_those_that_wrote_nothing()
        self._wake_if_nobody_leads()

    def _answer_those_that_wrote_nothing(self) -> None:
        while self._commits and not self._commits[0].writes:
            commit = self._commits.pop(0)
            commit.reply(commit.answer)

    # --- faults -------------------------------------------------------------------------------------------------------

    def bring_standby_back(self) -> None:
        """Let the standby answer again: all that has waited for it is committed."""
        self.standby_is_away = False
        on_disk = [commit for commit in self._commits if commit.is_on_disk]
        if on_disk:
            self._commit_to(on_disk[-1])

    def cancel_waits(self) -> None:
        """Let all that waits for the standby become visible without it; no caller is told that it is committed."""
        while self._commits:
            commit = self._commits.pop(0)
            self._unreplicated.append(commit.tables)
            self._show(commit, Failed("the wait for the standby was cancelled"))

    def stop(self, *, kept: int = 0) -> None:
        """Stop at once. Of what is written and not committed the disk keeps the first `kept` transactions."""
        self.is_up = False
        self._unreplicated += self.in_flight()[:kept]
        self._commits = []
        if self._unreplicated:
            self.visible = self._unreplicated[-1]
        for session in list(self.sessions):
            session.end(by_server=True)

    def start(self) -> None:
        """Serve again."""
        self.is_up = True

    def in_flight(self) -> list[Tables]:
        """Return the tables after each transaction that is written and not committed, in order."""
        return [commit.tables for commit in self._commits if commit.writes]

    def unacknowledged(self) -> list[Tables]:
        """Return the tables after each transaction that nobody was told is committed, in order."""
        return [*self._unreplicated, *self.in_flight()]

    def on_standby(self, *, received: int, lost: int) -> Tables:
        """Return what a standby has that lacks `lost` acknowledged commits, or has `received` that are not."""
        assert not (received and lost)
        return self.unacknowledged()[received - 1] if received else self._acknowledged[-1 - lost]


class MemoryDatabase:
    """The database as brokers reach it: by the server that is the primary now."""

    def __init__(self, scheduler: Scheduler, now_ms: Callable[[], int]) -> None:
        self.primary = DatabaseServer(scheduler, now_ms, Tables())
        self._scheduler = scheduler
        self._lock_keys = count(1)

    def draw_lock_key(self) -> int:
        """Return a key for the lock of a leader: no other has it."""
        return next(self._lock_keys)

    def restart(self, *, kept: int = 0) -> None:
        """Stop the primary, and start it again; see `DatabaseServer.stop`."""
        self.primary.stop(kept=kept)
        self.primary.start()

    def fail_over(self, *, received: int = 0, lost: int = 0, old_lives: bool = False) -> DatabaseServer:
        """Make the standby the primary, and return the old one.

        It has `received` of the transactions that were not acknowledged, or lacks the last `lost` that were. If the old
        one lives, those who are connected to it still read there, and nothing of theirs is committed.
        """
        old = self.primary
        self.primary = DatabaseServer(self._scheduler, old.now_ms, old.on_standby(received=received, lost=lost))
        self.primary.commit_seconds = old.commit_seconds
        old.standby_is_away = True
        if not old_lives:
            old.stop()
        return old
