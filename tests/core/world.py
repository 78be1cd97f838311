"""A core with a log and a clock to drive by hand: what the engine does, without waiting and without a disk."""

from typing import TypedDict

from exacta.core.apply import apply
from exacta.core.commands import (
    AddGroup,
    AddPartitions,
    AppendBatch,
    BeginTransaction,
    Command,
    CommitTransactionalOffsets,
    CreateTopic,
    EndHandle,
    EndTransaction,
    EndTransactions,
    InitProducerId,
    JoinTransaction,
    OffsetToCommit,
    TransactionToEnd,
)
from exacta.core.decide import decide
from exacta.core.event_codec import decode_event, encode_event
from exacta.core.events import BatchAppended, BatchStaged, Event, IdsReserved, TransactionEnded
from exacta.core.ids import PartitionId, ProducerEpoch, ProducerId, TransactionId, TransactionVersion
from exacta.core.outcome import Notice, Outcome, Timer
from exacta.core.promises import Promise
from exacta.core.replies import (
    DONE,
    Appended,
    ProducerBoundReply,
    TransactionBegunReply,
    TransactionEndedReply,
    TransactionJoinedReply,
)
from exacta.core.room import unnamed_growth
from exacta.core.snapshot import after_recovery
from exacta.core.state.state import State
from exacta.core.state.transaction import Transaction, handle_name
from exacta.core.transactions.expiry import timers_after_recovery
from exacta.core.transactions.loss import fences_after_loss
from exacta.core.values.limits import Limits
from exacta.core.writers import IdempotentWriter, NamedWriter, NamelessWriter, Writer
from simulation.invariants.invariants import violations
from simulation.invariants.log import Acknowledged

_NOT_AWAITED = {Promise.REGISTRATION, Promise.NOTHING, Promise.NEW_ID, Promise.SOON, Promise.INSIDE}
"""What promises only this may be lost with the machine, if nothing follows it; but for the reservation of an id."""


def named_writer(name: str, sequence: int) -> NamedWriter:
    """Return the named writer of a batch that has one sequence."""
    return NamedWriter(name=name, first_sequence=sequence, last_sequence=sequence)


SMALL = Limits(highest_epoch=3, sequence_modulus=8, retained_batches=2, group_min_session_timeout_ms=1)


class Who(TypedDict):
    """A producer as commands name it."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch


class World:
    """State, the durable events that led to it (encoded and decoded on the way), and the timers that are set."""

    def __init__(self, limits: Limits = SMALL, owner: str = "") -> None:
        self.state = State(limits=limits)
        self.owner = owner
        """The host whose share of the tables the commands count towards."""
        self.log: list[Event] = []
        self.acknowledged: list[Acknowledged] = []
        self.told: dict[tuple[PartitionId, int], bool] = {}
        """Where a batch lies whose client was told how its transaction ended -> whether it was committed."""
        self.now_ms = 1_000_000
        self.timers: list[Timer] = timers_after_recovery(self.state, self.now_ms)
        self.woken: dict[int, object] = {}
        self.notices: list[tuple[object, Notice]] = []
        """All that somebody was told without having asked."""
        self.durable_length = 0
        self.given_out: set[TransactionId] = set()
        """Ids of handles that were answered, in all lives."""
        self.found_after_loss: set[TransactionId] = set()

    def send(self, command: Command) -> object:
        """Decide and apply; return the reply (None while it waits)."""
        outcome: Outcome = decide(self.state, command, self.now_ms, self.owner)
        assert not unnamed_growth(self.state, command, outcome)
        for event in outcome.events:
            if event.durable:
                event = decode_event(encode_event(event))
                self.log.append(event)
            apply(self.state, event)
        is_awaited = command.promises not in _NOT_AWAITED or any(
            isinstance(each, IdsReserved) for each in outcome.events
        )
        if is_awaited and any(event.durable for event in outcome.events):
            self.durable_length = len(self.log)
        self.timers += outcome.timers
        self.woken.update(outcome.wakes)
        self.notices += outcome.notices
        if isinstance(command, AppendBatch) and isinstance(outcome.reply, Appended):
            partition = self.state.partition(command.topic, command.partition)
            assert partition is not None
            events = (each for each in outcome.events if isinstance(each, BatchAppended | BatchStaged))
            written = next(events, None) or command.writer
            assert not isinstance(written, NamedWriter | NamelessWriter | None), "their repeats are told no offset"
            self.acknowledged.append(
                Acknowledged(
                    partition.partition_id,
                    outcome.reply.base_offset,
                    command.record_count,
                    written.producer_id,
                    written.producer_epoch,
                    written.base_sequence,
                )
            )
        return outcome.reply

    def pass_time(self, ms: int) -> None:
        """Let time pass and send every timer that is due, in order of time."""
        end_ms = self.now_ms + ms
        while due := [timer for timer in self.timers if timer.at_ms <= end_ms]:
            timer = min(due, key=lambda timer: timer.at_ms)
            self.timers.remove(timer)
            self.now_ms = max(self.now_ms, timer.at_ms)
            self.send(timer.command)
        self.now_ms = end_ms

    def crash(self, *, machine_stops: bool = False) -> None:
        """Lose what no acknowledged answer rests on, and recover from the rest, as after a stop of the machine."""
        del self.log[self.durable_length :]
        self.state = State(limits=self.state.limits)
        for event in self.log:
            apply(self.state, event)
        after_recovery(self.state)
        self.timers = timers_after_recovery(self.state, self.now_ms)
        if machine_stops:
            self.found_after_loss |= {key for key, each in self.state.transactions.items() if each.owner is None}
        for command in fences_after_loss(self.state) if machine_stops else ():
            assert self.send(command) == DONE

    def check(self) -> None:
        assert violations(self.state, self.log, self.acknowledged, self.found_after_loss) == []
        committed = self._committed()
        for place, told in self.told.items():
            assert committed[place] is told, f"the client of the batch at {place} was told committed={told}"

    def _committed(self) -> dict[tuple[PartitionId, int], bool]:
        """Return, by the log alone, of each batch of an ended transaction whether it was committed."""
        committed: dict[tuple[PartitionId, int], bool] = {}
        waiting: dict[ProducerId, list[tuple[PartitionId, int]]] = {}
        for event in self.log:
            if isinstance(event, BatchAppended) and event.transactional:
                waiting.setdefault(event.producer_id, []).append((event.partition_id, event.base_offset))
            elif isinstance(event, BatchStaged):
                waiting.setdefault(event.producer_id, []).append((event.partition_id, event.provisional_offset))
            elif isinstance(event, TransactionEnded):
                for producer_id in event.producer_ids:
                    committed.update(dict.fromkeys(waiting.pop(producer_id, []), event.committed))
        return committed

    # --- shorthand ----------------------------------------------------------------------------------------------------

    def topic(self, name: str = "t", partition_count: int = 2) -> None:
        self.send(CreateTopic(topic=name, topic_id=name.encode().ljust(16, b"0")[:16], partition_count=partition_count))

    def open_transaction(self, transactional_id: str = "x") -> Transaction | None:
        """Return what the transactional id has open."""
        return self.state.open_transaction(self.state.transactional_ids[transactional_id])

    def ongoing(self, transactional_id: str = "x") -> Transaction:
        """Return what the transactional id has open, which it must have."""
        transaction = self.open_transaction(transactional_id)
        assert transaction is not None
        return transaction

    def producer(
        self,
        transactional_id: str | None = "x",
        timeout_ms: int = 1000,
        version: TransactionVersion = TransactionVersion.V1,
        *,
        two_phase: bool = False,
        keep_prepared: bool = False,
    ) -> "Producer":
        bound = self.send(
            InitProducerId(
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                two_phase=two_phase,
                keep_prepared=keep_prepared,
            )
        )
        assert isinstance(bound, ProducerBoundReply), bound
        return Producer(self, transactional_id, bound.producer_id, bound.producer_epoch, version)

    def handle(self, timeout_ms: int = 1000, client: tuple[str, str] = ("", "")) -> "Handle":
        begun = self.send(BeginTransaction(timeout_ms=timeout_ms, client_id=client[0], client_host=client[1]))
        assert isinstance(begun, TransactionBegunReply), begun
        assert begun.transaction_id not in self.given_out
        self.given_out.add(begun.transaction_id)
        return Handle(self, begun.transaction_id, begun.producer_id)

    def end_all(self, *producers: "Producer", commit: bool, partitions: tuple[tuple[str, int], ...] = ()) -> object:
        """End the producers' transactions in one step; each names `partitions`."""
        entries = tuple(producer.to_end(*partitions) for producer in producers)
        return self.send(EndTransactions(transactions=entries, commit=commit))


class Handle:
    """A transaction without an owner, as a client that knows its id sees it."""

    def __init__(self, world: World, transaction_id: TransactionId, producer_id: ProducerId) -> None:
        self.world = world
        self.transaction_id = transaction_id
        self.producer_id = producer_id

    @property
    def name(self) -> str:
        return handle_name(self.transaction_id)

    def append(self, partition: int = 0, count: int = 1, writer: Writer | None = None) -> object:
        return self.world.send(
            AppendBatch(
                topic="t",
                partition=partition,
                record_count=count,
                size=61 + count,
                max_timestamp_ms=self.world.now_ms,
                writer=writer,
                transaction=self.transaction_id,
                handle_producer_id=self.producer_id,
            )
        )

    def commit_offsets(
        self, offset: int, group_id: str = "g", member_id: str = "", generation: int = -1, partition: int = 0
    ) -> object:
        offsets = (OffsetToCommit(topic="t", partition=partition, offset=offset),)
        return self.world.send(
            CommitTransactionalOffsets(
                transaction=self.transaction_id,
                group_id=group_id,
                offsets=offsets,
                member_id=member_id,
                generation=generation,
            )
        )

    def end(self, *, commit: bool, strict: bool = False) -> object:
        return self.world.send(EndHandle(transaction_id=self.transaction_id, commit=commit, strict=strict))


class Producer:
    """One client's view: its id, its epoch, its sequences."""

    def __init__(
        self,
        world: World,
        transactional_id: str | None,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        version: TransactionVersion = TransactionVersion.V1,
    ) -> None:
        self.world = world
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.epoch = epoch
        self.version = version
        self.sequences: dict[tuple[str, int], int] = {}
        self.written: list[tuple[PartitionId, int]] = []
        """What it knows to be written, in version 2, since its last transaction."""

    def _who(self) -> Who:
        assert self.transactional_id is not None
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def add(self, partition: int = 0, topic: str = "t") -> object:
        return self.world.send(AddPartitions(**self._who(), partitions=((topic, partition),)))

    def append(self, partition: int = 0, count: int = 1, *, sequence: int | None = None, topic: str = "t") -> object:
        """Append, by default at the client's next sequence, which only a success moves on."""
        modulus = self.world.state.limits.sequence_modulus
        base = self.sequences.get((topic, partition), 0) if sequence is None else sequence
        reply = self.world.send(
            AppendBatch(
                topic=topic,
                partition=partition,
                record_count=count,
                size=61 + count,
                max_timestamp_ms=self.world.now_ms,
                writer=IdempotentWriter(
                    transactional_id=self.transactional_id,
                    producer_id=self.producer_id,
                    producer_epoch=self.epoch,
                    base_sequence=base,
                    version=self.version,
                ),
            )
        )
        if isinstance(reply, Appended) and sequence is None:
            self.sequences[topic, partition] = (base + count) % modulus
        if isinstance(reply, Appended) and self.version is TransactionVersion.V2 and self.transactional_id is not None:
            partition_id = self.world.state.topics[topic].partition_id(partition)
            assert partition_id is not None
            self.written.append((partition_id, reply.base_offset))
        return reply

    def add_group(self, group_id: str = "g") -> object:
        return self.world.send(AddGroup(**self._who(), group_id=group_id))

    def commit_offsets(
        self,
        offset: int,
        group_id: str = "g",
        member_id: str = "",
        generation: int = -1,
        partition: int = 0,
        instance_id: str | None = None,
    ) -> object:
        offsets = (OffsetToCommit(topic="t", partition=partition, offset=offset),)
        return self.world.send(
            CommitTransactionalOffsets(
                **self._who(),
                group_id=group_id,
                offsets=offsets,
                member_id=member_id,
                generation=generation,
                version=self.version,
                instance_id=instance_id,
            )
        )

    def end(self, *, commit: bool, adopts: bool = True) -> object:
        """EndTxn; a client of version 2 adopts the pair in the answer, unless the answer gets lost."""
        reply = self.world.send(EndTransaction(**self._who(), commit=commit, version=self.version))
        if isinstance(reply, TransactionEndedReply) and self.version is TransactionVersion.V2:
            self.world.told.update(dict.fromkeys(self.written, commit))
            if adopts:
                self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
                self.sequences.clear()
                self.written.clear()
        elif self.version is TransactionVersion.V1:
            self.written.clear()
        return reply

    def ask_to_join(self, handle: Handle | None = None) -> object:
        """JoinTransaction: its own transaction, or a handle."""
        transaction = None if handle is None else handle.transaction_id
        return self.world.send(JoinTransaction(**self._who(), transaction=transaction))

    def join(self, handle: Handle | None = None) -> Handle:
        """Make a joint transaction; return it as the other side sees it."""
        joined = self.ask_to_join(handle)
        assert isinstance(joined, TransactionJoinedReply), joined
        transaction = self.world.state.transactions[joined.transaction_id]
        return Handle(self.world, joined.transaction_id, transaction.producer_ids[-1])

    def to_end(self, *partitions: tuple[str, int]) -> TransactionToEnd:
        """Name this producer's transaction, in a set of some to end together."""
        return TransactionToEnd(**self._who(), partitions=partitions)

    def init_again(self, *, keep_prepared: bool = False) -> object:
        """InitProducerId with the pair that the client holds (KIP-360); adopts the answer."""
        reply = self.world.send(
            InitProducerId(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=1000,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                keep_prepared=keep_prepared,
            )
        )
        if isinstance(reply, ProducerBoundReply):
            self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
            self.sequences.clear()
            self.written.clear()
        return reply


def world_of_ten() -> World:
    """Return a world with a topic whose messages 0 to 9 are committed, and their marker at offset 10."""
    world = World(SMALL)
    world.topic()
    writer = world.handle()
    writer.append(count=10)
    assert writer.end(commit=True) == DONE
    return world
