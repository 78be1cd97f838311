"""The recovery from a crash in a short history, held against what its clients were told (`crash_points.py`).

Owns the scene, which is an engine over a simulated disk, the kinds of crashes, and what must hold of each recovery. A
sidecar topic `s` has batches of one size in each partition, so that one can see whether they are read as written.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from exacta.core.commands import (
    BeginTransaction,
    Command,
    EndHandle,
    EndTransaction,
)
from exacta.core.events import BatchAppended, BatchStaged, Event
from exacta.core.ids import ProducerEpoch, ProducerId, TransactionId
from exacta.core.replies import DONE, TransactionBegunReply, TransactionEndedReply
from exacta.core.state.state import State
from exacta.core.values.limits import Limits
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


def recover(log: list[Operation], mode: str, told: Told, ledger: Ledger, name: str) -> list[str]:
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
    """Say whether this many batches of a sidecar topic's partition, all of one size, are as `_batch` makes them."""
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
