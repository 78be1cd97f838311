"""Fetch sessions (KIP-227): a reader need not repeat what it asks for, and is not told again what it knows.

Owns the sessions, which of them end when there are too many, and the rules below. Owns no wire format and no reading: a
session is asked which partitions to read, and of each result whether its reader must hear of it. Bound to nothing but
its id, as in Apache Kafka: a client may go on with it over another connection. A restart forgets all of them.

Theory of operation. A request names a session and an epoch, which counts the session's requests from 1 on:

    a request with                                    is answered                   the session
    epoch -1                                          in full                       ended
    epoch 0                                           in full                       ended, and a new one begun *
    another epoch, of no session                      FETCH_SESSION_ID_NOT_FOUND    -
    another epoch than its session expects            INVALID_FETCH_SESSION_EPOCH   stays
    the expected epoch, but topics the other way **   FETCH_SESSION_TOPIC_ID_ERROR  stays
    the expected epoch                                incrementally                 goes on
    the expected epoch, which forgets all partitions  incrementally                 ended

* Where there is room. ** By ids instead of names, or the reverse (KIP-516).

Refused requests change nothing. The new session of a full request is made with its answer, since it holds what was
answered; an incremental request that waited while another one took the next epoch is answered
INVALID_FETCH_SESSION_EPOCH.

Room. There are `slots` sessions, and as many partitions in all as `MAX_PARTITIONS` says. When all slots are taken, the
session used longest ago ends if that was more than two minutes ago; else the smallest of those that are older than two
minutes, if it is smaller than the new one; else there is none for the newcomer, which goes on in full. That is Kafka's
rule for consumers; its privilege of followers has no use here. What no topic can be called has no room either, since it
may be long: a full request that names it gets no session, and an incremental one ends its own.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct

from exacta.kafka.topic_names import is_legal_name
from exacta.ports.log import FetchPartition as Wanted
from exacta.ports.log import FetchResult, Visible
from exacta.protocol.kafka.errors import ErrorCode

NO_SESSION = 0
FULL_EPOCH = 0
FINAL_EPOCH = -1
_FIRST_EPOCH = 1
_HIGHEST_EPOCH = 2**31 - 1

EVICTION_MS = 120_000
"""An unused session is safe from others for so long, and so is a new one from larger ones."""

MAX_PARTITIONS = 200_000
"""The bound on partitions of all sessions: some 60 MB. A session beyond it ends, and its client goes on in full."""

MAX_SESSION_PARTITIONS = 20_000
"""The bound on the partitions of one session, which are gone through in one step. A larger one is treated alike."""

Key = tuple[bytes | str, int]
"""The topic id, or the name where the session goes by names; the partition index."""


class Asked(Struct, gc=False):
    """A partition as its reader asks for it. `topic` is None where no topic has the id."""

    topic: str | None
    topic_id: bytes
    partition: int
    fetch_offset: int = 0
    max_bytes: int = 0
    refused: ErrorCode = ErrorCode.NONE
    """The reason why it is not even read."""
    believed_epoch: int = -1
    """The epoch of the leader in which its reader believes; -1: it did not say."""
    fetched_epoch: int = -1
    """The epoch of the last record that its reader has read; -1: it did not say."""
    judged_under: int = -1
    """The leader epoch under which it was found out whether it can be read."""
    wanted: Wanted | None = None
    """The same for the engine; made once, since most requests of a session repeat it."""
    sent: Visible | None = None
    """The state that its reader was told last; None makes it hear of whatever comes next."""
    ended: tuple[int, int] | None = None
    """The epoch of which its reader has read beyond the end, and that end: it is told this, and not read for."""
    preferred_replica: int = -1
    """The broker that its reader is told to read from, so that it is not read here; -1: none."""

    @property
    def key(self) -> Key:
        """The name of the partition within a session."""
        return self.topic_id or self.topic or "", self.partition

    def named(self, topic: str) -> None:
        """Learn which topic the id is of, which nobody had when the partition was asked for."""
        self.topic = topic
        self.judged(self.refused, self.ended, self.judged_under)

    def judged(self, refused: ErrorCode, ended: tuple[int, int] | None, leader_epoch: int) -> None:
        """Learn whether it can be read under a leader."""
        self.refused, self.ended, self.judged_under = refused, ended, leader_epoch
        is_read = self.topic is not None and refused is ErrorCode.NONE and ended is None
        self.wanted = (
            Wanted(self.topic or "", self.partition, self.fetch_offset, self.max_bytes, self.topic_id)
            if is_read
            else None
        )

    def must_answer(self, result: FetchResult | None) -> bool:
        """Say whether the reader must hear of this, and remember that it does. None: refused before it was read.

        Kafka's rule: records, a change of high watermark or log start; here of the last stable offset, too; and every
        error, again and again, and whatever follows it.
        """
        if result is None or result.rejection is not None or result.visible is None:
            self.sent = None
            return True
        if not result.records and self.sent == result.visible:
            return False
        self.sent = result.visible
        return True


def _can_be_kept(partitions: Collection[Asked]) -> bool:
    return all(map(is_legal_name, {asked.topic or "" for asked in partitions}))


class FetchSession:
    """One reader's partitions, in the order in which they are read; those with records go last."""

    __slots__ = ("by_topic_id", "created_ms", "epoch", "partitions", "session_id", "used_ms")

    def __init__(self, session_id: int, by_topic_id: bool, partitions: dict[Key, Asked], now_ms: int) -> None:
        self.session_id = session_id
        self.by_topic_id = by_topic_id
        self.partitions = partitions
        self.epoch = _FIRST_EPOCH
        """The epoch that the next request is expected to have."""
        self.created_ms = self.used_ms = now_ms

    def update(self, added: Iterable[Asked], forgotten: Iterable[Key]) -> None:
        """Ask for these partitions too, or otherwise than before; then forget some."""
        for asked in added:
            known = self.partitions.get(asked.key)
            if known is not None:
                asked.sent = known.sent
                if asked.topic is None and known.topic is not None:  # it is gone, and may have been created again
                    asked.named(known.topic)
            self.partitions[asked.key] = asked
        for key in forgotten:
            self.partitions.pop(key, None)

    def answered_with_records(self, asked: Asked) -> None:
        """Read this one after all others the next time: no partition may starve another (KIP-74)."""
        if self.partitions.get(asked.key) is asked:
            del self.partitions[asked.key]
            self.partitions[asked.key] = asked


class FetchSessions:
    """All sessions of the broker."""

    def __init__(self, slots: int, new_id: Callable[[], int], *, max_partitions: int = MAX_PARTITIONS) -> None:
        """Create it without sessions; `new_id` gives a number that nobody can guess, from 1 to 2^31 - 1."""
        self._slots = slots
        self._new_id = new_id
        self._max_partitions = max_partitions
        self._sessions: dict[int, FetchSession] = {}  # in order of last use
        self._partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FetchSession]:
        return iter(self._sessions.values())

    def end(self, session_id: int) -> None:
        """Forget a session, if there is one."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)

    def find(self, session_id: int, epoch: int, *, by_topic_id: bool) -> FetchSession | ErrorCode:
        """Return the session that an incremental request names, or why it is refused."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_topic_id != by_topic_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        return session

    def go_on(
        self, session: FetchSession, added: Collection[Asked], forgotten: Iterable[Key], now_ms: int
    ) -> FetchSession | ErrorCode | None:
        """Change a session that was found and expect its next epoch; None: nothing is left of it, and it has ended."""
        if len(added) > MAX_SESSION_PARTITIONS or not (session.by_topic_id or _can_be_kept(added)):
            self.end(session.session_id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        before = len(session.partitions)
        session.update(added, forgotten)
        self._partitions += len(session.partitions) - before
        if not session.partitions:
            self.end(session.session_id)
            return None
        if self._partitions > self._max_partitions or len(session.partitions) > MAX_SESSION_PARTITIONS:
            self.end(session.session_id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.epoch = _FIRST_EPOCH if session.epoch == _HIGHEST_EPOCH else session.epoch + 1
        session.used_ms = now_ms
        del self._sessions[session.session_id]
        self._sessions[session.session_id] = session
        return session

    def begin(self, partitions: Iterable[Asked], now_ms: int, *, by_topic_id: bool) -> int:
        """Make a session of what was answered in full; return its id, or `NO_SESSION` where there is no room."""
        held = {asked.key: asked for asked in partitions}
        if not by_topic_id and not _can_be_kept(held.values()):
            return NO_SESSION
        victim = None
        if len(self._sessions) >= self._slots:
            victim = self._victim(len(held), now_ms)
            if victim is None:
                return NO_SESSION
        given_up = 0 if victim is None else len(victim.partitions)
        if self._partitions - given_up + len(held) > self._max_partitions:
            return NO_SESSION
        if victim is not None:
            self.end(victim.session_id)
        session_id = self._new_id()
        while session_id in self._sessions:
            session_id = self._new_id()
        self._sessions[session_id] = FetchSession(session_id, by_topic_id, held, now_ms)
        self._partitions += len(held)
        return session_id

    def _victim(self, size: int, now_ms: int) -> FetchSession | None:
        """Return the session that makes room for one of this many partitions, or None."""
        if not self._sessions:
            return None
        unused = next(iter(self._sessions.values()))
        if now_ms - unused.used_ms > EVICTION_MS:
            return unused
        old = [session for session in self._sessions.values() if now_ms - session.created_ms > EVICTION_MS]
        smallest = min(old, key=lambda session: (len(session.partitions), session.session_id), default=None)
        return smallest if smallest is not None and len(smallest.partitions) < size else None
