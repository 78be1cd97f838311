"""Every short history, and a crash at every call to the disk: bounded, and exhaustive within its bounds.

Most crash bugs of file systems and stores need no more than three operations (CrashMonkey, OSDI 2018). So all sequences
of up to three commands of a small alphabet are played, each on a disk of its own; then the machine stops after every
write, sync, rename and whatever else changes the disk, and keeps of what no sync covered: nothing, a prefix, all but
a torn sector, or sectors in another order; or only the process dies. What recovery makes of each is held against what
was decided and what was acknowledged (invariant 8, decisions 0016 and 0022).
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from exacta.core.commands import (
    Acknowledge,
    AddGroup,
    AddPartitions,
    AppendBatch,
    BeginTransaction,
    Command,
    CommitTransactionalOffsets,
    CreateTopic,
    EndHandle,
    EndTransaction,
    InitProducerId,
    JoinTransaction,
    OffsetToCommit,
    Subscribe,
)
from exacta.core.events import BatchAppended, BatchStaged, Event
from exacta.core.ids import NO_PRODUCER_ID, Offset, ProducerEpoch, ProducerId, TransactionId, TransactionVersion
from exacta.core.replies import DONE, Appended, ProducerBoundReply, TransactionBegunReply, TransactionEndedReply
from exacta.core.state.limits import Limits
from exacta.core.state.state import State
from exacta.core.state.subscription import SubscriptionType
from exacta.core.state.topic import TRANSACTION_BUFFER
from exacta.core.subscriptions.commands import EARLIEST
from exacta.core.transactions.loss import UNSEEN_MS
from exacta.core.writers import IdempotentWriter
from exacta.engine.schema import SCHEMA
from exacta.ports.journal import Failed
from exacta.ports.record_format import Buffer
from exacta.server.assembly import assemble_engine
from simulation.chance import dice
from simulation.disk.in_place import InPlace
from simulation.disk.simulated import Operation, SimulatedDisk
from simulation.groups import GroupsTold
from simulation.ledger import MAGIC_AT, Ledger
from simulation.loop import SimulatedLoop
from simulation.process import Process
from simulation.second_opinion import Steps
from simulation.watched_engine import Watch, WatchedEngine, WatchedJournal

SEGMENT_BYTES = 900
SNAPSHOT_EVENTS = 6
JOB_SECONDS = 0.001
LONG_ENOUGH_SECONDS = 0.003  # for an answer ahead of its sync, and not for that
MODES = ("process", "lost", "prefix", "torn", "reordered", "kept")
CHANGES = frozenset({"create", "write", "truncate", "sync", "sync directory", "rename", "remove", "failed sync"})
WIDE = 600
MOST_BYTES = 1 << 20
SUBSCRIPTION: dict[str, Any] = {"topic": "t", "partition": 0, "subscription": "s"}
NARROW = 40
LIMITS = Limits(max_held_batches_per_stream=1, max_held_bytes_per_stream=WIDE - 1)
"""A second batch of a staged stream lets it spill, and a wide one is spilled at once."""


Write = tuple[str, int, int]
"""Topic, partition, and the offset that the writer was told."""


class Told(NamedTuple):
    """The clients' knowledge at one point of a history."""

    durable: int
    written: int
    open_writes: tuple[Write, ...]
    """Each acknowledged write of the open transaction of version 1."""
    pair: tuple[int, int]
    handle: TransactionId | None
    handle_writes: tuple[Write, ...]
    """Each acknowledged write of the open handle."""
    acknowledged: int
    """The messages before this offset are acknowledged, as their consumer was told."""


class Scene:
    """An engine over a disk, driven command by command."""

    def __init__(self, disk: SimulatedDisk, ledger: Ledger, complain: Callable[[str], None], *, stopped: bool) -> None:
        self.loop = SimulatedLoop()
        self.disk = disk
        self.process = Process(self.loop, complain)
        try:
            self._recover(ledger, complain, stopped)
        except BaseException:
            self.loop.close()
            raise

    def _recover(self, ledger: Ledger, complain: Callable[[str], None], stopped: bool) -> None:
        journal = WatchedJournal.open(
            self.disk,
            self.process.call_soon,
            schema=SCHEMA,
            job_runner=InPlace(self.disk),
            segment_bytes=SEGMENT_BYTES,
            snapshot_events=SNAPSHOT_EVENTS,
            new_worker=self.process.worker(lambda: JOB_SECONDS),
        )
        self.journal = journal
        journal.ledger = ledger
        watch = Watch(ledger, Steps(LIMITS, complain), complain, {}, GroupsTold(), stopped)
        self.engine = assemble_engine(
            journal,
            self.process,
            make=partial(WatchedEngine, watch),
            clock=lambda: 1_000_000 + int(self.loop.time() * 1000),
            limits=LIMITS,
            on_failure=lambda failure: complain(str(failure)),
            fold_every_ms=0,
        )

    def ask(self, command: Command, payload: bytes | None = None, *, seconds: float = LONG_ENOUGH_SECONDS) -> Any:
        """Submit, and let so much time pass; return the answer, None if there is none yet."""
        answers: list[Any] = []
        self.engine.submit((command,), answers.extend, [payload])
        self.loop.run_until_complete(asyncio.sleep(seconds))
        return answers[0] if answers else None

    def close(self) -> None:
        """Forget it."""
        self.process.kill()
        self.disk.release()
        self.loop.close()


def _batch(command: AppendBatch) -> bytes:
    """Return bytes for a batch, which say no more than in which encoding they are."""
    data = bytearray([command.partition + 1]) * command.size
    data[MAGIC_AT] = command.body
    return bytes(data)


class _Play:
    """One history in the making."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self.ledger = Ledger(complain)
        self.scene = Scene(SimulatedDisk(), self.ledger, complain, stopped=False)
        self.scene.ask(CreateTopic(topic="t", topic_id=b"t" * 16, partition_count=2))
        sidecar = {TRANSACTION_BUFFER: "sidecar"}
        self.scene.ask(CreateTopic(topic="s", topic_id=b"s" * 16, partition_count=2, configs=sidecar))
        self.scene.ask(Subscribe(**SUBSCRIPTION, subscription_type=SubscriptionType.SHARED, begin=EARLIEST))
        self.pair = (-1, -1)
        self.second = (-1, -1)
        self._open: list[Write] = []
        self._handle: TransactionId | None = None
        self._handle_producer_id = NO_PRODUCER_ID
        self._handle_writes: list[Write] = []
        self._acknowledged = 0
        self._sequences: dict[tuple[tuple[int, int], str, int], int] = {}
        self.first_length = 0
        self.append(None, (-1, -1), 0, NARROW)
        self.bind()
        bound = self.scene.ask(InitProducerId(transactional_id="y", transaction_timeout_ms=60_000))
        self.second = bound.producer_id, bound.producer_epoch
        self.first_length = len(self.scene.disk.log)
        self.note()

    def note(self) -> None:
        """Put what is known now into the disk's log."""
        told = Told(
            self.ledger.durable_position,
            self.ledger.written_position,
            tuple(self._open),
            self.pair,
            self._handle,
            tuple(self._handle_writes),
            self._acknowledged,
        )
        self.scene.disk.note(told)

    def _who(self) -> dict[str, Any]:
        return {
            "transactional_id": "x",
            "producer_id": ProducerId(self.pair[0]),
            "producer_epoch": ProducerEpoch(self.pair[1]),
        }

    def bind(self) -> None:
        """Let another instance take the id over."""
        bound = self.scene.ask(InitProducerId(transactional_id="x", transaction_timeout_ms=60_000))
        assert isinstance(bound, ProducerBoundReply)
        self.pair = bound.producer_id, bound.producer_epoch
        self._open.clear()

    def append(
        self,
        name: str | None,
        pair: tuple[int, int],
        partition: int,
        size: int,
        second: bool = False,
        topic: str = "t",
    ) -> Any:
        """Append a batch."""
        sequence = self._sequences.get((pair, topic, partition), 0)
        writer = IdempotentWriter(
            producer_id=ProducerId(pair[0]),
            producer_epoch=ProducerEpoch(pair[1]),
            base_sequence=sequence,
            transactional_id=name,
            version=TransactionVersion.V2 if second else TransactionVersion.V1,
        )
        command = AppendBatch(
            topic=topic,
            partition=partition,
            record_count=1,
            size=size,
            max_timestamp_ms=0,
            writer=None if pair[0] < 0 else writer,
        )
        answer = self.scene.ask(command, _batch(command))
        if isinstance(answer, Appended):
            self._sequences[pair, topic, partition] = sequence + 1
        return answer

    def write(self) -> None:
        """Write into the open transaction of version 1, or begin it."""
        for partition in (0, 1):
            self._write("t", partition, NARROW)

    def stage(self) -> None:
        """Write to a marker topic, and to a sidecar topic, where it is held in one partition and spilled in the other.

        Done again, it spills what was held.
        """
        for topic, partition, size in (("t", 0, NARROW), ("s", 0, NARROW), ("s", 1, WIDE)):
            self._write(topic, partition, size)

    def _write(self, topic: str, partition: int, size: int) -> None:
        self.scene.engine.submit((AddPartitions(**self._who(), partitions=((topic, partition),)),), lambda _: None)
        answer = self.append("x", self.pair, partition, size, topic=topic)
        if isinstance(answer, Appended):
            self._open.append((topic, partition, answer.base_offset))
        self.note()

    def share(self) -> None:
        """Write into the open handle, or begin it."""
        if self._handle is None:
            begun = self.scene.ask(BeginTransaction(timeout_ms=60_000))
            assert isinstance(begun, TransactionBegunReply)
            self._handle, self._handle_producer_id = begun.transaction_id, begun.producer_id
            self.note()
        for partition in (0, 1):
            command = AppendBatch(
                topic="t",
                partition=partition,
                record_count=1,
                size=NARROW,
                max_timestamp_ms=0,
                transaction=self._handle,
                handle_producer_id=self._handle_producer_id,
            )
            answer = self.scene.ask(command, _batch(command))
            if isinstance(answer, Appended):
                self._handle_writes.append(("t", partition, answer.base_offset))
            self.note()

    def join(self) -> None:
        """Let the id take part in the open handle, and write into that before anybody has heard that it does."""
        if self._handle is not None and not self._open:
            self.scene.engine.submit((JoinTransaction(**self._who(), transaction=self._handle),), lambda _: None)
            self.write()

    def end(self, commit: bool) -> None:
        """End it."""
        answer = self.scene.ask(EndTransaction(**self._who(), commit=commit))
        if isinstance(answer, TransactionEndedReply):
            self._open.clear()

    def offsets(self) -> None:
        """Let a group's offset take part."""
        self.scene.engine.submit((AddGroup(**self._who(), group_id="g"),), lambda _: None)
        offset = OffsetToCommit(topic="t", partition=0, offset=7, leader_epoch=-1, metadata="")
        self.scene.ask(
            CommitTransactionalOffsets(**self._who(), group_id="g", offsets=(offset,), generation=-1, member_id="")
        )

    def acknowledge(self) -> None:
        """Acknowledge one message more, and write another one."""
        before = Offset(self._acknowledged + 1)
        if self.scene.ask(Acknowledge(**SUBSCRIPTION, before=before)) == DONE:
            self._acknowledged = before
        self.note()
        self.append(None, (-1, -1), 0, NARROW)

    def idle(self) -> None:
        """Let so much time pass, and be noted, that a transaction which begins then must be found after a crash."""
        self.scene.loop.run_until_complete(asyncio.sleep(UNSEEN_MS / 1000 + 0.1))
        self.scene.ask(InitProducerId(transactional_id="z", transaction_timeout_ms=60_000))


ALPHABET: dict[str, Callable[[_Play], Any]] = {
    "w": _Play.write,
    "d": _Play.stage,
    "c": lambda play: play.end(True),
    "a": lambda play: play.end(False),
    "i": _Play.bind,
    "o": _Play.offsets,
    "h": _Play.share,
    "j": _Play.join,
    "p": lambda play: play.append(None, (-1, -1), 0, NARROW),
    "s": _Play.idle,
    "k": _Play.acknowledge,
    "r": lambda play: play.append(None, (-1, -1), 1, WIDE),  # so that the next append begins a segment
    "v": lambda play: play.append("y", play.second, 0, NARROW, second=True),
}


def sequences(length: int = 3) -> list[str]:
    """Return all sequences of up to so many commands."""
    return ["".join(letters) for size in range(1, length + 1) for letters in itertools.product(ALPHABET, repeat=size)]


def crash_everywhere(sequence: str) -> tuple[int, list[str]]:
    """Play one sequence, and crash at every point in every way; return how many crashes, and what was wrong."""
    complaints: list[str] = []
    play = _Play(complaints.append)
    for letter in sequence:
        ALPHABET[letter](play)
        play.note()
    play.scene.loop.run_until_complete(asyncio.sleep(0.1))  # what was only written is synced, what is kept is stored
    play.note()
    log = list(play.scene.disk.log)
    play.scene.close()
    count = 0
    for length, told in _points(log, play.first_length):
        for mode in MODES:
            count += 1
            wrong = _recover(log[:length], mode, told, play.ledger, f"{sequence}/{length}/{mode}")
            complaints += [f"{sequence}: after call {length} ({log[length - 1][0]}), {mode}: {each}" for each in wrong]
    return count, complaints


def _points(log: list[Operation], first: int) -> Iterator[tuple[int, Told]]:
    told = Told(0, 0, (), (-1, -1), None, (), 0)
    for length, operation in enumerate(log, 1):
        if operation[0] == "note":
            assert isinstance(operation[1], Told)
            told = operation[1]
        if length > first and operation[0] in CHANGES:
            yield length, told


def _recover(log: list[Operation], mode: str, told: Told, ledger: Ledger, name: str) -> list[str]:
    wrong: list[str] = []
    before = SimulatedDisk.after(log)
    stopped = mode != "process"
    disk = _crashed(before, mode, name) if stopped else before.restarted()
    again = ledger.copy(wrong.append, durable=told.durable, written=told.written)
    try:
        scene = Scene(disk, again, wrong.append, stopped=stopped)
    except Exception as error:  # noqa: BLE001  # whatever it is: what a crash left must be recovered from
        return [f"{type(error).__name__}: {error}"]
    who: dict[str, Any] = {
        "transactional_id": "x",
        "producer_id": ProducerId(told.pair[0]),
        "producer_epoch": ProducerEpoch(told.pair[1]),
    }
    if wrong or "t" not in scene.engine._state.topics:
        scene.close()
        return wrong or ["the topic is gone, which was acknowledged"]
    state = scene.engine._state
    there = set(_writes(state, again.events))
    partition = state.partition("t", 0)
    subscription = None if partition is None else partition.subscriptions.get("s")
    wrong += _unreadable(scene)
    if (0 if subscription is None else subscription.position) < told.acknowledged:
        wrong.append(f"acknowledged again: messages before {told.acknowledged} come back, as {subscription} has it")
    lost = [write for write in told.open_writes if write not in there]
    if told.open_writes:
        answer = scene.ask(EndTransaction(**who, commit=True), seconds=0.02)
        if isinstance(answer, TransactionEndedReply) and lost:
            wrong.append(f"a transaction commits that has lost {lost}")
    if told.handle is not None:
        lost = [write for write in told.handle_writes if write not in there]
        answer = scene.ask(EndHandle(transaction_id=told.handle, commit=True), seconds=0.02)
        if answer == DONE and lost:
            wrong.append(f"a handle commits that has lost {lost}")
        begun = scene.ask(BeginTransaction(timeout_ms=60_000), seconds=0.02)
        if not isinstance(begun, TransactionBegunReply) or begun.transaction_id <= told.handle:
            wrong.append(f"ids: {begun} comes after transaction {told.handle}, which is given out a second time")
    wrong += _unreadable(scene)
    scene.close()
    return wrong


def _writes(state: State, events: list[Event]) -> Iterator[Write]:
    """Yield all writes into partitions that are there, with the offsets that their writers were told."""
    for event in events:
        if isinstance(event, BatchAppended | BatchStaged):
            partition = state.partitions[event.partition_id]
            told = event.base_offset if isinstance(event, BatchAppended) else event.provisional_offset
            yield partition.topic, partition.index, told


def _unreadable(scene: Scene) -> Iterator[str]:
    """Yield where a partition's log, as readers find it, has a hole or other bytes than were written (`_batch`)."""
    log = scene.engine._log
    for partition_id, seen in scene.engine._visible.items():
        partition, offset = scene.engine._state.partitions[partition_id], int(seen.log_start_offset)
        extents = log.find(partition_id, offset, seen.high_watermark, MOST_BYTES)
        found: list[Buffer | Failed] = []
        log.read(extents, found.extend)
        scene.loop.run_until_complete(asyncio.sleep(LONG_ENOUGH_SECONDS))
        for extent, data in zip(extents, found, strict=True):
            for first, last in zip(extent.first_offsets, extent.last_offsets, strict=True):
                if first != offset:
                    yield f"11: {partition.topic}-{partition.index} has nothing from {offset} to {first}"
                offset = last + 1
            if isinstance(data, Failed) or len(data) != extent.size:
                yield f"11: {partition.topic}-{partition.index} cannot be read at {extent.first_offsets}: {data!r}"
            elif partition.topic == "s" and not _is_as_written(bytes(data), partition.index, len(extent.first_offsets)):
                yield f"11: {partition.topic}-{partition.index} has other bytes at {extent.first_offsets}: {data!r}"
        if offset != seen.high_watermark:
            yield f"11: {partition.topic}-{partition.index} can be read to {offset}, and not to {seen.high_watermark}"


def _is_as_written(data: bytes, partition: int, count: int) -> bool:
    """Say whether so many batches of a sidecar topic's partition, all of one size, are as `_batch` makes them."""
    size = len(data) // count
    batches = [data[size * number : size * (number + 1)] for number in range(count)]
    return all(set(batch[MAGIC_AT + 1 :]) == {partition + 1} for batch in batches)


def _crashed(disk: SimulatedDisk, mode: str, name: str) -> SimulatedDisk:
    chance = dice(0, name)
    names = chance.randint(0, disk.unsynced_names)
    changes = disk.unsynced_changes()
    match mode:
        case "lost":
            return disk.crashed()
        case "kept":
            return disk.crashed(keep_sector=lambda _: True, keep_names=True, grow=True)
        case "prefix":
            return disk.crashed(keep_bytes=chance.randint(1, max(1, disk.unsynced_bytes())), keep_names=names)
        case "torn":
            torn = chance.randrange(changes) if changes else 0
            return disk.crashed(keep_sector=lambda sector: sector != torn, grow=True, keep_names=True)
        case _:
            return disk.crashed(keep_sector=lambda _: chance.random() < 0.5, grow=True, keep_names=names)
