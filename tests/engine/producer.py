"""A client of the engine that writes in transactions."""

from collections.abc import Callable
from typing import Any

from exacta.core.commands import AddPartitions, EndTransaction, InitProducerId
from exacta.core.ids import TransactionVersion
from exacta.core.replies import DONE, Appended, ProducerBoundReply, TransactionEndedReply
from exacta.core.transactions.loss import UNSEEN_MS
from exacta.core.values.limits import Limits
from exacta.ports.log import Answer
from tests.core.world import Who
from tests.engine.rig import Rig, batch


class Producer:
    """A transactional producer on a rig; a write is of version 1 unless it says otherwise."""

    def __init__(self, rig: Rig, transactional_id: str = "x", *, two_phase: bool = False) -> None:
        self.rig = rig
        self.transactional_id = transactional_id
        self.sequences: dict[int, int] = {}
        self.init(two_phase=two_phase)

    def init(self, *, two_phase: bool = False) -> None:
        command = InitProducerId(
            transactional_id=self.transactional_id, transaction_timeout_ms=60_000, two_phase=two_phase
        )
        reply = self.rig.ask(command)
        assert isinstance(reply, ProducerBoundReply)
        self.pair = reply.producer_id, reply.producer_epoch
        self.sequences.clear()

    def who(self) -> Who:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.pair[0],
            "producer_epoch": self.pair[1],
        }

    def add(self, *partitions: int) -> list[Any]:
        named = tuple(("t", partition) for partition in partitions or (0,))
        return self.rig.submit(AddPartitions(**self.who(), partitions=named))

    def write(
        self,
        payload: bytes,
        partition: int = 0,
        *,
        sequence: int | None = None,
        version: TransactionVersion = TransactionVersion.V1,
        then: Callable[[], None] = lambda: None,
    ) -> list[Any]:
        """Submit a batch; the returned list is filled, and `then` called, when the answer comes."""
        if sequence is None:
            sequence = self.sequences.get(partition, 0)
            self.sequences[partition] = sequence + 1
        command = batch(
            payload, partition, self.pair, sequence, transactional_id=self.transactional_id, version=version
        )
        answers: list[object] = []

        def done(found: list[Answer]) -> None:
            answers.extend(found)
            then()

        self.rig.engine.submit((command,), done, [payload])
        return answers

    def begin(self, payload: bytes = b"first") -> None:
        """Begin a transaction, durably."""
        added = self.add(0, 1)
        answers = self.write(payload)
        self.rig.loop.settle()
        self.rig.loop.pass_time(Limits().flush_interval_ms)
        assert added == [DONE]
        assert isinstance(answers[0], Appended)
        assert self.rig.storage.unsynced == 0

    def idle(self) -> None:
        """Let so much time pass that a begin which nobody finds would not be made up for."""
        self.rig.loop.pass_time(UNSEEN_MS + 1)

    def end(self, *, commit: bool = True, version: TransactionVersion = TransactionVersion.V1) -> object:
        reply = self.rig.ask(EndTransaction(**self.who(), commit=commit, version=version))
        if isinstance(reply, TransactionEndedReply):
            if self.pair != (reply.producer_id, reply.producer_epoch):
                self.sequences.clear()
            self.pair = reply.producer_id, reply.producer_epoch
        return reply
