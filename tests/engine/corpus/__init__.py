"""The corpus: small data directories of a released format, and the state and the batches that each holds.

`python -m tests.engine.corpus` makes the directory of the present format again, and says so in its expected state.
"""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from exacta.adapters.local.format import VERSION
from exacta.core.commands import (
    Acknowledge,
    AddGroup,
    AddPartitions,
    AppendBatch,
    BeginTransaction,
    CommitOffsets,
    CommitTransactionalOffsets,
    ConsumerHeartbeat,
    CreatePartitions,
    CreateTopic,
    DeleteGroup,
    DeleteOffsets,
    DeleteRecords,
    DeleteTopic,
    EndHandle,
    EndTransaction,
    ExpireProducers,
    ExpireTransactionalIds,
    ForgetCompacted,
    InitProducerId,
    JoinGroup,
    JoinTransaction,
    LeaveGroup,
    MemberToRemove,
    OffsetToCommit,
    Seek,
    SetBrokerConfigs,
    SetTopicConfigs,
    Subscribe,
    SyncGroup,
    TakeLead,
    TakePartition,
    Unsubscribe,
)
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.event_codec import EVENTS_SCHEMA
from exacta.core.ids import NO_PRODUCER_ID, Offset, PrincipalName, Ticket, TransactionVersion, WriterId
from exacta.core.replies import Joined, ProducerBoundReply, TransactionBegunReply, TransactionEndedReply
from exacta.core.values.limits import Limits
from exacta.core.values.subscriptions import SubscriptionType
from exacta.core.writers import IdempotentWriter, NamelessWriter, Writer
from exacta.protocol.kafka.batch_building import data_batch
from exacta.records.record_format import KafkaRecordFormat
from simulation.clients.batches import record
from simulation.disk.simulated import SimulatedDisk
from tests.core.world import named_writer
from tests.engine.corpus.access import access_commands
from tests.engine.disk_rig import DiskRig

DIRECTORY = Path(__file__).parent / f"format_{VERSION}_events_{EVENTS_SCHEMA}"
EXPECTED = "expected.json"
LOGIN = PrincipalName("User:corpus")
DAY_MS = 86_400_000
SEGMENT_BYTES = 3_000
UNBROKEN = 1 << 20
"""A segment in which all of a life lies: no snapshot is made in it."""


def make() -> SimulatedDisk:
    """Play every kind of event twice: the first half lies in a snapshot too, the second behind it."""
    disk = SimulatedDisk()
    first = Play(disk, 0, SEGMENT_BYTES)
    first.run()
    first.close()
    first.journal.close()
    disk = disk.restarted()
    second = Play(disk, 1, UNBROKEN)
    second.run()
    second.journal.close()
    return disk.restarted()


class Play(DiskRig):
    """A clean life, whose names and times are told by its number."""

    limits = Limits(max_held_batches_per_stream=2)
    format = KafkaRecordFormat()

    def __init__(self, disk: SimulatedDisk, number: int, segment_bytes: int) -> None:
        self.number = number
        super().__init__(disk, segment_bytes)

    def start(self) -> None:
        self.loop.now_ms += self.number * 30 * DAY_MS
        super().start()

    def named(self, name: str) -> str:
        return f"{name}{self.number}"

    def run(self) -> None:
        self._topics()
        self._transactions()
        self._staged()
        self._writers()
        self.ask(TakeLead(node_id=0))
        for commit in (True, False):
            self._handle(commit=commit)
        for commit in (True, False):
            self._joint(commit=commit)
        self._subscriptions()
        self._offsets()
        self._groups()
        self._access()
        self._expire()
        self._leave_something()

    def _topics(self) -> None:
        for letter in "abc":
            name = self.named(letter)
            self.ask(CreateTopic(topic=name, topic_id=name.encode().rjust(16, b"-"), partition_count=2))
        self.ask(CreatePartitions(topic=self.named("a"), total_count=3))
        self.ask(SetTopicConfigs(topic=self.named("a"), configs={"retention.ms": "1000"}))
        self.ask(SetBrokerConfigs(broker_id=str(self.number), configs={"log.retention.ms": "2000"}))
        self.ask(DeleteTopic(topic=self.named("c")))

    def _write(
        self,
        writer: Writer | None = None,
        topic: str = "a",
        partition: int = 0,
        count: int = 2,
        handle: TransactionBegunReply | None = None,
    ) -> object:
        idempotent = writer if isinstance(writer, IdempotentWriter) else None
        producer_id, producer_epoch = (-1, -1) if handle is None else (handle.producer_id, 0)
        if idempotent is not None:
            producer_id, producer_epoch = idempotent.producer_id, idempotent.producer_epoch
        data = data_batch(
            [record(delta, b"value %d of %d" % (delta, self.number)) for delta in range(count)],
            count,
            compression=0,
            transactional=handle is not None or (idempotent is not None and idempotent.transactional_id is not None),
            first_timestamp_ms=self.loop.now_ms,
            last_timestamp_ms=self.loop.now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=-1 if idempotent is None else idempotent.base_sequence,
        )
        command = AppendBatch(
            topic=self.named(topic),
            partition=partition,
            record_count=count,
            size=len(data),
            max_timestamp_ms=self.loop.now_ms,
            writer=writer,
            transaction=None if handle is None else handle.transaction_id,
            handle_producer_id=NO_PRODUCER_ID if handle is None else handle.producer_id,
        )
        return self.ask(command, payloads=[data])

    def _bind(self, transactional_id: str | None) -> ProducerBoundReply:
        bound = self.ask(
            InitProducerId(
                transactional_id=transactional_id,
                transaction_timeout_ms=60_000,
                client_id="corpus",
                client_host="127.0.0.1",
                principal=LOGIN,
            )
        )
        assert isinstance(bound, ProducerBoundReply)
        return bound

    def _transactions(self) -> None:
        idempotent = self._bind(None)
        for sequence in (0, 2):
            self._write(
                IdempotentWriter(
                    producer_id=idempotent.producer_id,
                    producer_epoch=idempotent.producer_epoch,
                    base_sequence=sequence,
                )
            )
        for commit in (True, False, True):
            self._transaction(self.named("x"), commit=commit, version=TransactionVersion.V1)
        self._transaction(self.named("y"), commit=False, version=TransactionVersion.V2)

    def _transaction(self, transactional_id: str, *, commit: bool | None, version: TransactionVersion) -> None:
        bound = self._bind(transactional_id)
        who: dict[str, Any] = {
            "transactional_id": transactional_id,
            "producer_id": bound.producer_id,
            "producer_epoch": bound.producer_epoch,
        }
        if version is TransactionVersion.V1:
            self.ask(AddPartitions(**who, partitions=tuple((self.named(topic), 0) for topic in "ab")))
            self.ask(AddGroup(**who, group_id=self.named("readers")))
        for topic in "ab":
            self._write(IdempotentWriter(**who, base_sequence=0, version=version), topic)
        offsets = (OffsetToCommit(topic=self.named("a"), partition=0, offset=bound.producer_epoch + 1),)
        self.ask(CommitTransactionalOffsets(**who, group_id=self.named("readers"), offsets=offsets, version=version))
        if commit is not None:
            assert isinstance(self.ask(EndTransaction(**who, commit=commit, version=version)), TransactionEndedReply)

    def _staged(self) -> None:
        """Write to a sidecar topic, in streams that the state holds and in others that spill."""
        name = self.named("s")
        configs = {"transaction.buffer": "sidecar"}
        topic_id = name.encode().rjust(16, b"-")
        self.ask(CreateTopic(topic=name, topic_id=topic_id, partition_count=1, configs=configs))
        for number, (batches, commit) in enumerate(((1, True), (3, True), (3, False), (1, None), (3, None))):
            transactional_id = f"{self.named('staged')}-{number}"
            bound = self._bind(transactional_id)
            for sequence in range(batches):
                writer = IdempotentWriter(
                    transactional_id=transactional_id,
                    producer_id=bound.producer_id,
                    producer_epoch=bound.producer_epoch,
                    base_sequence=2 * sequence,
                    version=TransactionVersion.V2,
                )
                self._write(writer, "s")
            if commit is not None:
                self.ask(
                    EndTransaction(
                        transactional_id=transactional_id,
                        producer_id=bound.producer_id,
                        producer_epoch=bound.producer_epoch,
                        commit=commit,
                        version=TransactionVersion.V2,
                    )
                )

    def _writers(self) -> None:
        for sequence in (3, 9):
            self._write(replace(named_writer(self.named("file"), sequence), principal=LOGIN), partition=1)
        self._write(named_writer(self.named("other"), 0), "b", 1)
        self._write(None, "b", 1)
        self.ask(TakePartition(topic=self.named("b"), partition=1))

    def _handle(self, *, commit: bool | None) -> None:
        begun = self.ask(
            BeginTransaction(timeout_ms=60_000, client_id="corpus", client_host="127.0.0.1", principal=LOGIN)
        )
        assert isinstance(begun, TransactionBegunReply)
        self._write(named_writer(self.named("file"), 20 + begun.transaction_id), "b", handle=begun)
        self._write(NamelessWriter(number=WriterId(-2), sequence=0, is_back=False), "b", handle=begun)
        offsets = (OffsetToCommit(topic=self.named("a"), partition=1, offset=begun.transaction_id),)
        self.ask(
            CommitTransactionalOffsets(
                group_id=self.named("readers"), offsets=offsets, transaction=begun.transaction_id
            )
        )
        if commit is not None:
            self.ask(EndHandle(transaction_id=begun.transaction_id, commit=commit))

    def _joint(self, *, commit: bool) -> None:
        """Join a handle, end it by its id, and let its owner hear of that or not."""
        bound = self._bind(self.named("joint"))
        who: dict[str, Any] = {
            "transactional_id": self.named("joint"),
            "producer_id": bound.producer_id,
            "producer_epoch": bound.producer_epoch,
        }
        begun = self.ask(
            BeginTransaction(timeout_ms=60_000, client_id="corpus", client_host="127.0.0.1", principal=LOGIN)
        )
        assert isinstance(begun, TransactionBegunReply)
        self.ask(JoinTransaction(**who, transaction=begun.transaction_id))
        self.ask(AddPartitions(**who, partitions=((self.named("b"), 0),)))
        self._write(None, "b", handle=begun)
        self.ask(EndHandle(transaction_id=begun.transaction_id, commit=commit))
        if commit:
            assert isinstance(self.ask(EndTransaction(**who, commit=commit)), TransactionEndedReply)

    def _subscriptions(self) -> None:
        where: dict[str, Any] = {"topic": self.named("b"), "partition": 0, "subscription": "billing"}
        for subscription_type in (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED):
            self.ask(
                Subscribe(
                    **where,
                    subscription_type=subscription_type,
                    begin=EARLIEST,
                    properties={"owner": self.named("o")},
                    principal=LOGIN,
                )
            )
        self.ask(Seek(**where, to=Offset(1)))
        self.ask(Acknowledge(**where, runs=((Offset(3), Offset(3)),)))
        for commit in (True, False, None):
            begun = self.ask(
                BeginTransaction(timeout_ms=60_000, client_id="corpus", client_host="127.0.0.1", principal=LOGIN)
            )
            assert isinstance(begun, TransactionBegunReply)
            after = Offset(5 + begun.transaction_id % 3)
            self.ask(Acknowledge(**where, runs=((after, after),), transaction=begun.transaction_id))
            if commit is not None:
                self.ask(EndHandle(transaction_id=begun.transaction_id, commit=commit))
        where["subscription"] = "gone"
        self.ask(Subscribe(**where, subscription_type=SubscriptionType.EXCLUSIVE))
        self.ask(Unsubscribe(**where))

    def _offsets(self) -> None:
        offsets = tuple(
            OffsetToCommit(topic=self.named("a"), partition=partition, offset=1, metadata="m") for partition in range(2)
        )
        for group in ("plain", "gone"):
            self.ask(CommitOffsets(group_id=self.named(group), offsets=offsets))
        self.ask(DeleteOffsets(group_id=self.named("plain"), partitions=((self.named("a"), 1),)))
        self.ask(DeleteGroup(group_id=self.named("gone")))
        self.ask(DeleteRecords(topic=self.named("a"), partition=0, before_offset=2))
        end_offset = self.engine._state.partition(self.named("b"), 0)
        assert end_offset is not None
        before_offset = end_offset.aborted[0].last_offset + 1
        self.ask(ForgetCompacted(topic=self.named("b"), partition=0, before_offset=before_offset))

    def _groups(self) -> None:
        for group, stays in (("classic", True), ("left", False)):
            joined = self.ask(
                JoinGroup(
                    ticket=Ticket(0),
                    group_id=self.named(group),
                    member_id="",
                    new_member_id="member",
                    client_id="corpus",
                    client_host="127.0.0.1",
                    principal=LOGIN,
                    session_timeout_ms=30_000,
                    rebalance_timeout_ms=60_000,
                    protocol_type="consumer",
                    protocols=(("range", b"subscription"),),
                    knows_member_id_required=False,
                    subscription=frozenset({self.named("a")}),
                    instance_id="instance" if stays else None,
                )
            )
            assert isinstance(joined, Joined)
            self.ask(
                SyncGroup(
                    ticket=Ticket(0),
                    group_id=self.named(group),
                    member_id="member",
                    generation=joined.generation,
                    assignments=(("member", b"assignment"),),
                )
            )
            if not stays:
                self.ask(LeaveGroup(group_id=self.named(group), members=(MemberToRemove(member_id="member"),)))
        self.ask(
            ConsumerHeartbeat(
                group_id=self.named("consumer"),
                member_id="member",
                member_epoch=0,
                client_id="corpus",
                client_host="127.0.0.1",
                principal=LOGIN,
                rebalance_timeout_ms=60_000,
                topics=frozenset({self.named("b")}),
                owned=frozenset(),
            )
        )

    def _access(self) -> None:
        for command in access_commands(self.named, LOGIN):
            self.ask(command)

    def _expire(self) -> None:
        self.loop.now_ms += 10 * DAY_MS
        self._write(named_writer(self.named("file"), 10), partition=1)
        self._bind(self.named("z"))
        self.ask(ExpireProducers())
        self.ask(ExpireTransactionalIds())

    def _leave_something(self) -> None:
        """Leave producers, open transactions, and an aborted one that readers are told of."""
        self._handle(commit=None)
        for commit in (True, False, None):
            self._transaction(self.named("z"), commit=commit, version=TransactionVersion.V2)
