"""A broker that follows a shared log, and waits for its lead.

This module reads the tail as it grows, delivers what is proven to be durable, and takes the lead. What a group proves
is in `unproven`, and when the lead may be claimed in `standby`.

Theory of operation. One coroutine goes round: it reads the tail behind what it has read, then the head, takes in what
is proven now, and sleeps until a hint or for `POLL_SECONDS`. Before a group is taken in, the catalog that its leader
knew is loaded. What is no longer in the tail is read from objects.

The ledger may show another log than it did before. Mostly a group was read that was never durable; then all that is not
proven is read again. If it goes on so, the ledger has lost what was durable: its failover took a database that lacked
it, or somebody has put an old one in its place. Then this broker follows no further, and does not lead. Others say the
same, since each has seen how far the log was durable (`Witness`).

To take the lead is to claim an epoch. From then on nobody else appends. What the tail shows then is durable, and is
delivered before anything is appended.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from exacta.adapters.shared.alarm import Alarm
from exacta.adapters.shared.groups import CheckedGroup, check_group
from exacta.adapters.shared.journal import SharedJournal
from exacta.adapters.shared.pulse import Pulse
from exacta.adapters.shared.shared_log import LedgerAway, LedgerWavers, Parts, SharedLog
from exacta.adapters.shared.standby import Standby
from exacta.adapters.shared.steps import Step, Steps, call, call_in
from exacta.adapters.shared.unproven import Contradiction, Unproven
from exacta.ports.following import Delivered, Leader
from exacta.ports.journal import Failed, JournalDamaged
from exacta.ports.shared import Appended, Claimed, Head, TailGroup

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
AGAIN_SECONDS = 0.25
"""A follower that could not go on reads all again which it could not take in: not at each hint."""
READ_BYTES = 4 << 20
CONTRADICTED_SECONDS = 1.0
"""All that is read may contradict what was read before for this long."""
UNKNOWN_SECONDS = 1.0
"""A follower that has not reached the ledger for so long does not know who leads."""


class SharedFollower(SharedLog):
    """Implement `exacta.ports.following.Follower`; made by `opening.open_follower`."""

    def __init__(self, parts: Parts, node_id: int, instance: str) -> None:
        """Begin where the catalog's tail begins."""
        catalog = parts.catalog
        super().__init__(parts, catalog.tail_from, catalog.last_checksum)
        self._node_id = node_id
        self._instance = instance
        self._unproven = Unproven(self.position, self._checksum)
        self._last = self.position
        """The position of the last group that was taken in."""
        self._head: Head | None = None
        self._verified_epoch = 0
        self._contradicted_at: float | None = None
        self._heard_at = parts.elapsed_seconds()
        self._begun: list[tuple[int, Sequence[bytes]]] = []
        """Until `follow`: the groups that were taken in, each by its end and events."""
        self._deliver: Callable[[Delivered], None] | None = None
        self._alarm = Alarm(parts.scheduler)
        self._standby = Standby(parts.ledger, parts.elapsed_seconds, self._alarm.ring)
        self._led: Callable[[SharedJournal | Failed], None] = lambda result: None
        self._must_wait: Callable[[], bool] = lambda: False
        self._await_round: list[Callable[[Failed | None], None]] = []
        self._leader: Leader | None = None
        self._on_leader: Callable[[], None] = lambda: None
        self._steps: Steps[SharedJournal] | None = None

    # --- what the engine asks for -------------------------------------------------------------------------------------

    def begin(self) -> tuple[bytes | None, Iterator[bytes]]:
        """See `Follower.begin`."""
        replay = self._parts.catalog.replay()
        return replay.blob, self._replayed(replay.events, max(replay.position, self.tail_from))

    def _replayed(self, events: Iterator[bytes], position: int) -> Iterator[bytes]:
        yield from events
        for end, of_group in self._begun:
            if end > position:
                yield from of_group

    def follow(self, deliver: Callable[[Delivered], None]) -> None:
        """See `Follower.follow`."""
        self._begun = []
        self._deliver = deliver
        self._ledger.on_hint(self._alarm.ring)
        self._steps = Steps(self._follow(), self._hand_over, self._give_up)

    def catch_up(self, done: Callable[[Failed | None], None]) -> None:
        """See `Follower.catch_up`."""
        if self._failure is not None:
            self._call_soon(done, self._failure)
            return
        Steps(self._catch_up(), done, lambda error: done(Failed(str(error))))

    async def _catch_up(self) -> Failed | None:
        self._alarm.ring()
        while True:
            # A read alone could be answered by a database that another one has replaced.
            confirmed = await call(self._ledger.confirm, 0 if self._head is None else self._head.epoch)
            if isinstance(confirmed, Failed):
                return confirmed
            if isinstance(confirmed, Appended):
                self._alarm.ring()
            if (failed := await self._next_round()) is not None:
                return failed
            if isinstance(confirmed, Appended):
                break
        end = self._unproven.end
        while self.position < min(end, self._unproven.end):
            if (failed := await self._next_round()) is not None:
                return failed
        return None

    def _next_round(self) -> Step[Failed | None]:
        """Wait for the end of a round that begins later."""

        return Step(lambda done: self._await_round.append(done))

    def lead(
        self, done: Callable[[SharedJournal | Failed], None], must_wait: Callable[[], bool] = lambda: False
    ) -> None:
        """See `Follower.lead`."""
        self._led, self._must_wait = done, must_wait
        self._standby.is_wanted = True
        if self._failure is not None:
            self._call_soon(done, self._failure)

    @property
    def leader(self) -> Leader | None:
        """See `Follower.leader`."""
        return self._leader

    def on_leader(self, changed: Callable[[], None]) -> None:
        """See `Follower.on_leader`."""
        self._on_leader = changed

    def close(self) -> None:
        """See `JournalReader.close`."""
        if self._steps is not None:
            self._steps.stop()
        self._alarm.stop()
        self._parts.release()

    # --- going round --------------------------------------------------------------------------------------------------

    async def _follow(self) -> SharedJournal:
        while True:
            waiting, self._await_round = self._await_round, []
            try:
                head = await self.go_round()
            except (LedgerAway, OSError) as error:
                logger.info("the shared log cannot be followed for now: %s", error)
                self._note_leader(None)
                self._end_round(waiting, Failed(str(error)))
                await Step[None](lambda done: self._parts.scheduler.call_later(AGAIN_SECONDS, done, None))
            else:
                self._end_round(waiting, None)
                if self._standby.is_wanted and (journal := await self._take_lead(head)) is not None:
                    return journal
                await self._alarm.sleep(POLL_SECONDS)

    @staticmethod
    def _end_round(waiting: Sequence[Callable[[Failed | None], None]], result: Failed | None) -> None:
        for done in waiting:
            done(result)

    async def go_round(self) -> Head:
        """Take in what is proven to be durable by now; return the head that has said so.

        Raises LedgerAway or OSError where this can succeed later, and JournalDamaged where it cannot.
        """
        while True:
            try:
                head, has_more = await self._read_on()
            except LedgerAway:
                self._unproven.forget()  # the next answer may be another database's
                raise
            except Contradiction as contradiction:
                self._wait_out(contradiction)
            if not has_more:  # else what was read again may be contradicted by what follows
                self._contradicted_at = None
                return head

    def _wait_out(self, contradiction: Contradiction) -> NoReturn:
        """Have all that is not proven read again, unless that was tried for long."""
        self._unproven.forget()
        now = self._parts.elapsed_seconds()
        if self._contradicted_at is None:
            self._contradicted_at = now
        if now - self._contradicted_at >= CONTRADICTED_SECONDS:
            raise contradiction
        raise LedgerWavers(str(contradiction)) from contradiction

    async def _read_on(self) -> tuple[Head, bool]:
        """Read once; also return whether there is more to read."""
        known, end = self._head, self._unproven.end
        groups = await self._read_tail(end)
        for group in groups:
            self._add(group)
        head = await self._read_head()
        if head.epoch != self._verified_epoch:
            await self._verify(head)
        has_more = head.durable > self._unproven.end or sum(len(each.body) for each in groups) > READ_BYTES // 2
        if not groups and head.tail_from > end:
            await self._read_objects(head)
            has_more = True
        elif not groups and known is not None and known.durable > end:
            raise Contradiction(f"the log ends at position {end}, and was durable up to {known.durable}")
        elif not has_more:
            self._check_end(head)
        self._unproven.hear(head.epoch, head.durable)
        await self._take_in_proven(head.catalog)
        self._standby.hear(head, self._unproven.end)
        self._note_leader(head)
        return head, has_more or self.position < self._parts.catalog.tail_from

    def _add(self, group: TailGroup) -> None:
        checked, witness = check_group(group), self._parts.witness
        is_seen = checked.position < witness.position <= checked.end
        if is_seen and (witness.position, witness.checksum) != (checked.end, checked.checksum):
            raise Contradiction(f"the group at position {group.position} is another than was durable before")
        self._unproven.add(checked)

    def _check_end(self, head: Head) -> None:
        """Raise Contradiction if what was read to its end lacks what was durable."""
        durable = max([self._parts.witness.position, *self._parts.catalog.durable])
        if max(self._unproven.end, head.tail_from) < durable:
            raise Contradiction(f"the log ends at position {self._unproven.end}, and was durable up to {durable}")

    async def _read_tail(self, position: int, max_bytes: int = READ_BYTES) -> Sequence[TailGroup]:
        groups: Sequence[TailGroup] | Failed = await call(self._ledger.read_tail, position, max_bytes)
        if isinstance(groups, Failed):
            raise LedgerAway(groups.reason)
        return groups

    async def _read_head(self) -> Head:
        head: Head | Failed = await call(self._ledger.read_head)
        if isinstance(head, Failed):
            raise LedgerAway(head.reason)
        self._heard_at = self._parts.elapsed_seconds()
        self._head = head
        return head

    async def _verify(self, head: Head) -> None:
        """Raise Contradiction if the log of a new epoch lacks what was durable."""
        if head.tail_from <= self._last < self.position:
            groups = await self._read_tail(self._last, 1)
            if not groups or check_group(groups[0]).checksum != self._checksum:
                raise Contradiction(f"the group at position {self._last} is no longer what it was")
        self._verified_epoch = head.epoch

    async def _read_objects(self, head: Head) -> None:
        """Take in from objects what is no longer in the tail."""
        await self._load_catalog(head.catalog)
        catalog = self._parts.catalog
        position, end, checksum = self.position, catalog.tail_from, catalog.last_checksum
        await self._check_objects(position, self._checksum)
        events: Sequence[bytes] = ()
        if self._deliver is not None:  # else they are a part of what `begin` replays
            events = await call_in(self._parts.worker, self._parts.post, lambda: list(catalog.events(position, end)))
        self._unproven = Unproven(end, checksum)
        self._last = end
        self._reach(end, checksum)
        self._tell([(end, events)])

    async def _check_objects(self, position: int, checksum: int | None) -> None:
        """Raise Contradiction if objects have another group than the one that ends here with this checksum."""
        catalog = self._parts.catalog
        found = await call_in(self._parts.worker, self._parts.post, lambda: catalog.checksum_before(position))
        if None not in (found, checksum) and found != checksum:
            raise Contradiction(f"objects have another log before position {position} than was durable there")

    async def check_witness(self) -> None:
        """Raise Contradiction if the beginning of the log, which is in objects, is another than was durable once."""
        witness = self._parts.witness
        if 0 < witness.position <= self.tail_from:
            await self._check_objects(witness.position, witness.checksum)

    # --- taking in ----------------------------------------------------------------------------------------------------

    async def _take_in_proven(self, version: int = 0) -> None:
        catalog = self._parts.catalog
        while True:
            for position, checksum in catalog.durable.items():
                self._unproven.vouch(position, checksum)
            wanted = max([version, *(group.catalog for group in self._unproven.proven())])
            if wanted <= catalog.version:
                break
            await self._load_catalog(wanted)
        self._tell([self._take_group(group) for group in self._unproven.take()])

    def _take_group(self, group: CheckedGroup) -> tuple[int, Sequence[bytes]]:
        rows = [(group.payload_position + entry.payload_start, entry.rows) for entry in group.entries if entry.rows]
        assert group.position == self.position, "a group is taken in where the one before it ends"
        self._last = group.position
        self._take_in(group.previous_checksum, group.checksum, group.body, rows)
        return group.end, [entry.event for entry in group.entries]

    def _tell(self, groups: Sequence[tuple[int, Sequence[bytes]]]) -> None:
        if self._deliver is None:
            self._begun += groups
        elif groups:
            self._deliver(Delivered(groups[-1][0], [event for _, events in groups for event in events]))

    # --- the lead -----------------------------------------------------------------------------------------------------

    def _note_leader(self, head: Head | None) -> None:
        if head is None:
            if self._parts.elapsed_seconds() - self._heard_at < UNKNOWN_SECONDS:
                return
            leader = None
        else:
            leader = None if head.leader is None else Leader(head.leader, head.epoch)
        if leader != self._leader:
            self._leader = leader
            self._on_leader()

    async def _take_lead(self, head: Head) -> SharedJournal | None:
        if not self._standby.may_claim(head) or self._must_wait():
            return None
        self._standby.tried()
        claimed = await call(self._ledger.claim, head, self._node_id, self._instance)
        if not isinstance(claimed, Claimed):
            return None  # another was faster, or nobody knows
        lost: list[Failed] = []
        pulse = Pulse(self._ledger, self._parts.scheduler, claimed.epoch, self.position, lost.append)
        is_ready = False
        try:
            await self._read_rest(claimed.epoch)
            is_ready = not lost
        except (LedgerAway, OSError) as error:
            logger.info("the lead of the shared log was taken, and is given up: %s", error)
        finally:
            if not is_ready:
                pulse.stop()
        if not is_ready:
            self._ledger.resign(claimed.epoch)
            return None
        pulse.reach(self.position)
        self._parts.loader.end()
        return SharedJournal(self._parts, self.position, self._checksum, claimed.epoch, pulse)

    async def _read_rest(self, epoch: int) -> None:
        """Deliver what the tail has at the beginning of this epoch; all of it is durable."""
        self._unproven.forget()
        while True:
            head = await self._read_head()
            if head.epoch != epoch:
                raise LedgerAway(f"another broker leads, in epoch {head.epoch}")
            await self._verify(head)
            groups = await self._read_tail(self._unproven.end)
            for group in groups:
                self._add(group)
            self._unproven.prove_all()
            await self._take_in_proven(head.catalog)
            if not groups and head.tail_from <= self._unproven.end:
                self._check_end(head)
                return
            if not groups:
                await self._read_objects(head)

    def _hand_over(self, journal: SharedJournal) -> None:
        self._end_round(self._await_round, Failed("this broker leads now"))
        self._led(journal)

    def _give_up(self, error: Exception) -> None:
        if not isinstance(error, JournalDamaged):
            logger.error("following the shared log failed", exc_info=error)
        failure = Failed(str(error))
        self._end_round(self._await_round, failure)
        self._fail(failure)
        if self._standby.is_wanted:
            self._led(failure)
