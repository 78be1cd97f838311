"""Random histories over the core with small limits: every invariant after every step."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule
from msgspec.structs import replace

from exacta.core.commands import (
    AbortByMarker,
    AppendBatch,
    Command,
    CommitOffsets,
    CreatePartitions,
    DeleteGroup,
    DeleteRecords,
    DeleteTopic,
    OffsetToCommit,
    RefuseAppends,
    SetBrokerConfigs,
    SetDiskRoom,
    SetTopicConfigs,
    TakeLead,
    TakePartition,
    Trim,
)
from exacta.core.events import BatchAppended, TransactionEnded
from exacta.core.groups.expiry import KEPT_METADATA
from exacta.core.ids import PartitionId, ProducerEpoch, TransactionId, TransactionVersion, WriterId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, TransactionJoinedReply
from exacta.core.snapshot import after_recovery, restore, snapshot
from exacta.core.state.disk_room import DiskRoom
from exacta.core.values.transactions import Phase
from exacta.core.writers import NamedWriter, NamelessWriter
from tests.core.access.values import COMMANDS
from tests.core.world import SMALL, Handle, Producer, World
from tests.shares import examples

partitions = st.integers(0, 2)  # the last one is there only once partitions were added
transactional_ids = st.sampled_from(["x", "y"])
versions = st.sampled_from(TransactionVersion)
FORGETFUL = replace(
    SMALL,
    transactional_id_expiration_ms=3000,
    transactional_id_expiry_interval_ms=500,
    producer_id_expiration_ms=2000,
    producer_id_expiry_interval_ms=500,
    max_expired_at_once=1,
    offsets_retention_ms=1500,
    group_expiry_interval_ms=500,
    max_offsets_looked_at=1,
    max_named_writers=2,
    max_incidents_per_id=2,
    max_ids_with_incidents=1,
    max_held_batches_per_stream=2,
    max_held_bytes_per_stream=4 * 62,
    max_held_bytes=6 * 62,
    max_staged_bytes=12 * 62,
)
BUFFERS: tuple[dict[str, str], ...] = ({}, {"transaction.buffer": "marker"}, {"transaction.buffer": "sidecar"})


class CoreMachine(RuleBasedStateMachine):
    """Clients of both versions, zombies among them (every producer ever made stays in the bundle), time, crashes."""

    producers = Bundle("producers")
    handles = Bundle("handles")

    @initialize(buffer=st.sampled_from(["marker", "sidecar"]))
    def begin(self, buffer: str) -> None:
        self.limits = replace(FORGETFUL, transaction_buffer=buffer)
        self.world = World(self.limits)
        self.world.topic()
        self.stable: dict[PartitionId, int] = {}
        self.started = 0
        self.begun = 0
        self.ended: dict[TransactionId, bool] = {}
        self.opened: dict[tuple[str, PartitionId], int] = {}
        """How often a partition had closed its writers when a named one was opened, by its name and the partition."""
        self.held_up: set[tuple[str, PartitionId, int]] = set()
        """The named writers of which a batch was refused, as they were opened then."""

    # Few, or nearly all are zombies and nothing but fencing happens.
    @precondition(lambda self: self.started < 4)
    @rule(
        target=producers,
        transactional_id=st.none() | transactional_ids,
        timeout_ms=st.sampled_from([50, 1000]),
        version=versions,
        two_phase=st.booleans(),
        keep=st.booleans(),
    )
    def start(
        self, transactional_id: str | None, timeout_ms: int, version: TransactionVersion, two_phase: bool, keep: bool
    ) -> Producer:
        self.started += 1
        return self.world.producer(transactional_id, timeout_ms, version, two_phase=two_phase, keep_prepared=keep)

    @rule(producer=producers, version=versions)
    def change_version(self, producer: Producer, version: TransactionVersion) -> None:
        producer.version = version

    @rule(producer=producers, keep=st.booleans())
    def init_again(self, producer: Producer, keep: bool) -> None:
        if producer.transactional_id is not None:
            producer.init_again(keep_prepared=keep)

    @rule(producer=producers, partition=partitions)
    def abort_by_marker(self, producer: Producer, partition: int) -> None:
        self.world.send(
            AbortByMarker(
                producer_id=producer.producer_id, producer_epoch=producer.epoch, topic="t", partition=partition
            )
        )

    @rule(producer=producers, partition=partitions)
    def add(self, producer: Producer, partition: int) -> None:
        if producer.transactional_id is not None:
            producer.add(partition)

    @rule(producer=producers, partition=partitions, count=st.integers(1, 3))
    def append(self, producer: Producer, partition: int, count: int) -> None:
        producer.append(partition, count)

    @rule(producer=producers, partition=partitions, count=st.integers(1, 3), sequence=st.integers(0, 7))
    def append_anything(self, producer: Producer, partition: int, count: int, sequence: int) -> None:
        producer.append(partition, count, sequence=sequence)

    @rule(
        name=st.sampled_from("mno"),
        partition=partitions,
        sequence=st.integers(0, 9),
        count=st.integers(1, 3),
        is_part=st.booleans(),
        reopens=st.booleans(),
    )
    def append_named(self, name: str, partition: int, sequence: int, count: int, is_part: bool, reopens: bool) -> None:
        """Send a batch, or a part of a large message, over a connection that may have been closed."""
        closings, last = self.world.state.volatile.closings, sequence if is_part else sequence + count - 1
        found = self.world.state.partition("t", partition)
        partition_id = None if found is None else found.partition_id
        if partition_id is not None and (reopens or (name, partition_id) not in self.opened):
            self.opened[name, partition_id] = closings.get(partition_id, 0)
        command = AppendBatch(
            topic="t",
            partition=partition,
            partition_id=partition_id,
            closings=None if partition_id is None else self.opened[name, partition_id],
            record_count=1 if is_part else count,
            size=62,
            max_timestamp_ms=0,
            writer=NamedWriter(name=name, first_sequence=sequence, last_sequence=last, is_part=is_part),
        )
        length = len(self.world.log)
        answer = self.world.send(command)
        stored = [event for event in self.world.log[length:] if isinstance(event, BatchAppended)]
        assert len(stored) == isinstance(answer, Appended)
        assert all((event.base_sequence >= 0) is not is_part for event in stored)
        if partition_id is not None:
            self.keeps_the_order(name, partition_id, answer)

    @rule(name=st.sampled_from("mno"), partition=partitions, sequence=st.integers(0, 9), by_disk=st.booleans())
    def refuse_one_of_two(self, name: str, partition: int, sequence: int, by_disk: bool) -> None:
        """Refuse a batch, and let the next one of its writer come when there is room again."""
        if by_disk:
            self.set_room(DiskRoom(append_bytes=0))
        else:
            self.refuse_appends(partition, Rejection.BACKLOG_QUOTA_EXCEEDED)
        self.append_named(name, partition, sequence, count=1, is_part=False, reopens=False)
        self.set_room(None)
        self.refuse_appends(partition, None)
        self.append_named(name, partition, sequence + 1, count=1, is_part=False, reopens=False)

    def keeps_the_order(self, name: str, partition_id: PartitionId, answer: object) -> None:
        """Nothing of a writer is stored behind what was refused because its partition took none, until it is back."""
        opened = (name, partition_id, self.opened[name, partition_id])
        if answer in (Rejection.DISK_FULL, Rejection.BACKLOG_QUOTA_EXCEEDED, Rejection.WRITER_CLOSED):
            self.held_up.add(opened)
        assert not (isinstance(answer, Appended) and opened in self.held_up)

    @rule(partition=partitions, topic_epoch=st.none() | st.integers(0, 4))
    def take_partition(self, partition: int, topic_epoch: int | None) -> None:
        self.world.send(TakePartition(topic="t", partition=partition, topic_epoch=topic_epoch))

    @rule()
    def take_lead(self) -> None:
        self.world.send(TakeLead(node_id=0))

    @rule(producer=producers, written=st.lists(partitions, min_size=1, max_size=3), commit=st.none() | st.booleans())
    def transact(self, producer: Producer, written: list[int], commit: bool | None) -> None:
        """Write as clients do, and maybe end: by single rules hardly any transaction with records is committed."""
        for partition in written:
            if producer.transactional_id is not None and producer.version is TransactionVersion.V1:
                producer.add(partition)
            producer.append(partition)
        if producer.transactional_id is not None and commit is not None:
            producer.end(commit=commit)

    @rule(producer=producers, offset=st.integers(0, 9), partition=partitions)
    def offsets(self, producer: Producer, offset: int, partition: int) -> None:
        if producer.transactional_id is not None:
            if producer.version is TransactionVersion.V1:
                producer.add_group()
            producer.commit_offsets(offset, partition=partition)

    @rule(offset=st.integers(0, 9), metadata=st.sampled_from(["", KEPT_METADATA[0]]))
    def plain_offsets(self, offset: int, metadata: str) -> None:
        offsets = (OffsetToCommit(topic="t", partition=0, offset=offset, metadata=metadata),)
        self.world.send(CommitOffsets(group_id="g", offsets=offsets))

    @rule(producer=producers, commit=st.booleans(), answered=st.booleans())
    def end(self, producer: Producer, commit: bool, answered: bool) -> None:
        if producer.transactional_id is not None:
            producer.end(commit=commit, adopts=answered)

    @rule(chosen=st.lists(producers, max_size=3), commit=st.booleans(), partitions=st.sets(partitions))
    def end_all(self, chosen: list[Producer], commit: bool, partitions: set[int]) -> None:
        chosen = [producer for producer in chosen if producer.transactional_id is not None]
        before, length = snapshot(self.world.state), len(self.world.log)
        names = tuple(("t", partition) for partition in sorted(partitions))
        answer = self.world.end_all(*chosen, commit=commit, partitions=names)
        ended = [event for event in self.world.log[length:] if isinstance(event, TransactionEnded)]
        if answer != DONE:
            assert snapshot(self.world.state) == before, "all or none"
            return
        wanted = Phase.COMPLETE_COMMIT if commit else Phase.COMPLETE_ABORT
        held = [self.world.state.transactional_ids[str(producer.transactional_id)] for producer in chosen]
        assert all(entry.phase is wanted for entry in held)
        assert len(ended) in (0, len(chosen)), "a repeat ends nothing"

    @precondition(lambda self: self.begun < 4)
    @rule(target=handles, timeout_ms=st.sampled_from([50, 1000]))
    def begin_handle(self, timeout_ms: int) -> Handle:
        self.begun += 1
        return self.world.handle(timeout_ms)

    @rule(target=handles, producer=producers, handle=st.none() | handles)
    def join(self, producer: Producer, handle: Handle | None) -> object:
        """Join a handle, or the producer's own transaction, in the middle of it or before it begins."""
        if producer.transactional_id is None:
            return multiple()
        answer = producer.ask_to_join(handle)
        if not isinstance(answer, TransactionJoinedReply) or handle is not None:
            return multiple()
        return producer.join()

    @rule(producer=producers, handle=handles, written=st.lists(partitions, max_size=2), ends=st.integers(0, 4))
    def transact_jointly(self, producer: Producer, handle: Handle, written: list[int], ends: int) -> None:
        """Join a handle, write by both sides, and maybe end by one of them, as one program would."""
        if producer.transactional_id is None or not isinstance(producer.ask_to_join(handle), TransactionJoinedReply):
            return
        for partition in written:
            if producer.version is TransactionVersion.V1:
                producer.add(partition)
            producer.append(partition)
            handle.append(partition)
        if ends < 2:
            producer.end(commit=ends == 0)
        elif ends < 4:
            self.end_handle_of(handle, commit=ends == 2)

    @rule(handle=handles, partition=partitions, count=st.integers(1, 3))
    def write_into(self, handle: Handle, partition: int, count: int) -> None:
        handle.append(partition, count)

    @rule(
        handle=handles,
        partition=partitions,
        number=st.integers(-4, -2),
        sequence=st.integers(0, 4),
        is_back=st.booleans(),
        is_part=st.booleans(),
    )
    def write_without_a_name(
        self, handle: Handle, partition: int, number: int, sequence: int, is_back: bool, is_part: bool
    ) -> None:
        writer = NamelessWriter(number=WriterId(number), sequence=sequence, is_back=is_back, is_part=is_part)
        handle.append(partition, writer=writer)

    @rule(handle=handles, offset=st.integers(0, 9), partition=partitions)
    def offsets_into(self, handle: Handle, offset: int, partition: int) -> None:
        handle.commit_offsets(offset, partition=partition)

    @rule(handle=handles, commit=st.booleans(), strict=st.booleans())
    def end_handle(self, handle: Handle, commit: bool, strict: bool) -> None:
        """One who is told how a handle ended is told the truth, and the same for ever."""
        is_open = handle.transaction_id in self.world.state.transactions
        answer = self.end_handle_of(handle, commit=commit, strict=strict)
        assert is_open or not strict or answer is Rejection.TRANSACTION_NOT_FOUND

    def end_handle_of(self, handle: Handle, *, commit: bool, strict: bool = False) -> object:
        reply = handle.end(commit=commit, strict=strict)
        if reply == DONE:
            assert self.ended.setdefault(handle.transaction_id, commit) is commit
        return reply

    @rule(handle=handles, partition=partitions)
    def abort_handle_by_marker(self, handle: Handle, partition: int) -> None:
        self.world.send(
            AbortByMarker(
                producer_id=handle.producer_id, producer_epoch=ProducerEpoch(0), topic="t", partition=partition
            )
        )

    @rule(group_id=st.sampled_from(["g", "h"]))
    def delete_group(self, group_id: str) -> None:
        self.world.send(DeleteGroup(group_id=group_id))

    @rule(total_count=st.integers(0, 4), validate_only=st.booleans())
    def create_partitions(self, total_count: int, validate_only: bool) -> None:
        self.world.send(CreatePartitions(topic="t", total_count=total_count, validate_only=validate_only))

    @rule(partition=partitions, before_offset=st.integers(-2, 12))
    def delete_records(self, partition: int, before_offset: int) -> None:
        self.world.send(DeleteRecords(topic="t", partition=partition, before_offset=before_offset))

    @rule(partition=partitions, before_offset=st.integers(-2, 12))
    def trim(self, partition: int, before_offset: int) -> None:
        self.world.send(Trim(topic="t", partition=partition, before_offset=before_offset))

    @rule(partition=partitions, reason=st.sampled_from([None, None, Rejection.BACKLOG_QUOTA_EXCEEDED]))
    def refuse_appends(self, partition: int, reason: Rejection | None) -> None:
        self.world.send(RefuseAppends(topic="t", partition=partition, reason=reason))

    @rule(room=st.sampled_from([None, None, DiskRoom(append_bytes=0), DiskRoom(append_bytes=130)]))
    def set_room(self, room: DiskRoom | None) -> None:
        self.world.send(SetDiskRoom(room=room))

    @rule(configs=st.sampled_from([*BUFFERS, {"a": "1"}]), validate_only=st.booleans())
    def set_configs(self, configs: dict[str, str], validate_only: bool) -> None:
        self.world.send(SetTopicConfigs(topic="t", configs=configs, validate_only=validate_only))

    @rule(
        broker_id=st.sampled_from(["", "0"]),
        configs=st.sampled_from([{}, {"a": "1"}, {"a": "2", "b": "1"}]),
        validate_only=st.booleans(),
    )
    def set_broker_configs(self, broker_id: str, configs: dict[str, str], validate_only: bool) -> None:
        self.world.send(SetBrokerConfigs(broker_id=broker_id, configs=configs, validate_only=validate_only))

    @rule(command=COMMANDS)
    def change_who_may_do_what(self, command: Command) -> None:
        self.world.send(command)

    @rule(ms=st.sampled_from([1, 49, 50, 1000, 4000]))
    def pass_time(self, ms: int) -> None:
        self.world.pass_time(ms)

    @rule()
    def recover_from_snapshot(self) -> None:
        """Crash with everything durable: the snapshot alone must bring the same state back."""
        self.world.state = restore(snapshot(self.world.state), self.limits)
        after_recovery(self.world.state)
        self.forget_connections()

    def forget_connections(self) -> None:
        self.opened.clear()
        self.held_up.clear()

    @rule(machine_stops=st.booleans())
    def crash(self, machine_stops: bool) -> None:
        """Crash and forget the registrations that were acknowledged last."""
        self.world.crash(machine_stops=machine_stops)
        self.forget_connections()

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "world"):
            self.world.check()
            for partition in self.world.state.partitions.values():
                before = self.stable.get(partition.partition_id, 0)
                assert before <= partition.last_stable_offset, "the last stable offset never moves back"
                self.stable[partition.partition_id] = partition.last_stable_offset


TestCore = CoreMachine.TestCase
TestCore.settings = settings(max_examples=examples(150), stateful_step_count=40)


def test_a_deleted_topic_takes_its_open_transactions_along() -> None:
    world = World()
    world.topic("t")
    world.topic("u")
    producer = world.producer()
    producer.add(0, "t")
    producer.add(0, "u")
    producer.append(0, topic="t")
    producer.append(0, topic="u")
    producer.add_group()
    producer.commit_offsets(3)
    world.send(DeleteTopic(topic="t"))
    producer.end(commit=True)
    kept = world.state.partition("u", 0)
    assert kept is not None
    assert kept.last_stable_offset == 2
    assert world.state.groups["g"].offsets == {}
    assert world.state.topics.keys() == {"u"}
