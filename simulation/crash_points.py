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
from typing import Any

from exacta.core.commands import (
    Acknowledge,
    AddGroup,
    AddPartitions,
    AppendBatch,
    BeginTransaction,
    CommitTransactionalOffsets,
    CreateTopic,
    EndTransaction,
    InitProducerId,
    JoinTransaction,
    OffsetToCommit,
    Subscribe,
)
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.ids import NO_PRODUCER_ID, Offset, ProducerEpoch, ProducerId, TransactionId, TransactionVersion
from exacta.core.replies import DONE, Appended, ProducerBoundReply, TransactionBegunReply, TransactionEndedReply
from exacta.core.transactions.loss import UNSEEN_MS
from exacta.core.values.subscriptions import SubscriptionType
from exacta.core.values.transaction_buffer import SIDECAR, TRANSACTION_BUFFER
from exacta.core.writers import IdempotentWriter
from simulation.crash_recovery import (
    CHANGES,
    MODES,
    NARROW,
    SUBSCRIPTION,
    WIDE,
    Scene,
    Told,
    Write,
    recover,
)
from simulation.disk.simulated import Operation, SimulatedDisk
from simulation.ledger import MAGIC_AT, Ledger


def _batch(command: AppendBatch) -> bytes:
    """Return bytes for a batch, which say no more than in which encoding they are."""
    data = bytearray([command.partition + 1]) * command.size
    data[MAGIC_AT] = command.body
    return bytes(data)


class _Play:
    """One history in the making."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self.ledger = Ledger(complain, has_records=False)
        self.scene = Scene(SimulatedDisk(), self.ledger, complain, stopped=False)
        self.scene.ask(CreateTopic(topic="t", topic_id=b"t" * 16, partition_count=2))
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

        Done again, it spills what was held. The sidecar topic is made for it, so that the other histories do without.
        """
        if "s" not in self.scene.engine._state.topics:
            sidecar = {TRANSACTION_BUFFER: SIDECAR}
            self.scene.ask(CreateTopic(topic="s", topic_id=b"s" * 16, partition_count=2, configs=sidecar))
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
    """Return all sequences of up to this many commands."""
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
            wrong = recover(log[:length], mode, told, play.ledger, f"{sequence}/{length}/{mode}")
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
