"""Random histories of sidecar topics: every invariant holds after every step, and so little is held that most spills.

`tests/core/test_machine.py` has all commands, and hardly anything is staged there.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from exacta.core.commands import CreateTopic, DeleteRecords, DeleteTopic, SetTopicConfigs
from exacta.core.ids import Body, PartitionId, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.snapshot import after_recovery, is_same, restore, snapshot
from tests.core.log.staging_world import MARKER, ONE, SIDECAR, append_as
from tests.core.world import SMALL, Handle, Producer, World
from tests.shares import examples

LIMITS = replace(
    SMALL,
    highest_epoch=32766,
    sequence_modulus=2**31,
    max_held_batches_per_stream=2,
    max_held_bytes_per_stream=3 * ONE,
    max_held_bytes=5 * ONE,
    max_staged_bytes=12 * ONE,
)
BUFFERS: tuple[dict[str, str], ...] = ({}, MARKER, SIDECAR)
VERSIONS = (TransactionVersion.V1, TransactionVersion.V2)
owners, handles, writers = st.integers(0, 1), st.integers(2, 3), st.integers(0, 3)
partitions = st.integers(0, 1)
counts = st.sampled_from([1, 1, 1, 2, 200])


class StagingMachine(RuleBasedStateMachine):
    """Two owners of transactional ids and two handles write to one topic, which is mostly a sidecar topic."""

    @initialize(configs=st.sampled_from([*BUFFERS, *BUFFERS[2:] * 3]))
    def begin(self, configs: dict[str, str]) -> None:
        self.world = World(LIMITS)
        self.create(configs)
        self.stable: dict[PartitionId, int] = {}
        self.writers: dict[int, Producer | Handle] = {}

    def create(self, configs: dict[str, str]) -> None:
        self.world.send(CreateTopic(topic="t", topic_id=b"t" * 16, partition_count=2, configs=configs))

    def writer(self, number: int) -> Producer | Handle:
        """Return a writer, which begins if it is not there."""
        if number not in self.writers:
            is_owner = number < len(VERSIONS)
            self.writers[number] = (
                self.world.producer("xy"[number], 60_000, VERSIONS[number]) if is_owner else self.world.handle(60_000)
            )
        return self.writers[number]

    @rule(number=writers, written=st.lists(st.tuples(partitions, counts), min_size=1, max_size=3))
    def write(self, number: int, written: list[tuple[int, int]]) -> None:
        for partition, count in written:
            writer = self.writer(number)
            if isinstance(writer, Producer) and writer.version is TransactionVersion.V1:
                writer.add(partition)
            answer = writer.append(partition, count)
            if isinstance(answer, Rejection) and answer is not Rejection.TOO_MUCH_STAGED:
                del self.writers[number]  # it was fenced, or its transaction has ended

    @rule(number=owners, partition=partitions, count=counts, sequence=st.integers(0, 4))
    def repeat(self, number: int, partition: int, count: int, sequence: int) -> None:
        writer = self.writer(number)
        assert isinstance(writer, Producer)
        writer.append(partition, count, sequence=sequence)

    @rule(number=handles, partition=partitions, count=counts, body=st.sampled_from(Body), by_log=st.booleans())
    def share(self, number: int, partition: int, count: int, body: Body, by_log: bool) -> None:
        writer = self.writer(number)
        assert isinstance(writer, Handle)
        append_as(writer, partition=partition, count=count, body=body, takes_append_time=by_log)

    @rule(number=owners, other=handles)
    def join(self, number: int, other: int) -> None:
        owner, handle = self.writer(number), self.writer(other)
        assert isinstance(owner, Producer)
        assert isinstance(handle, Handle)
        owner.ask_to_join(handle)

    @rule(partition=partitions)
    def append(self, partition: int) -> None:
        self.world.producer(None).append(partition)

    @rule(number=writers, commit=st.sampled_from([True, True, False]))
    def end(self, number: int, commit: bool) -> None:
        self.writer(number).end(commit=commit)
        if number >= len(VERSIONS):
            del self.writers[number]

    @rule(number=owners)
    def take_over(self, number: int) -> None:
        """Let a new instance of the owner begin."""
        self.writers.pop(number, None)
        self.writer(number)

    @rule(configs=st.sampled_from(BUFFERS))
    def change(self, configs: dict[str, str]) -> None:
        self.world.send(SetTopicConfigs(topic="t", configs=configs))

    @rule(partition=partitions, share=st.floats(0, 1))
    def delete_records(self, partition: int, share: float) -> None:
        found = self.world.state.partition("t", partition)
        assert found is not None
        before_offset = round(share * found.last_stable_offset)
        self.world.send(DeleteRecords(topic="t", partition=partition, before_offset=before_offset))

    @precondition(lambda self: len(self.world.log) > 20)
    @rule(configs=st.sampled_from(BUFFERS))
    def delete_topic(self, configs: dict[str, str]) -> None:
        self.world.send(DeleteTopic(topic="t"))
        self.create(configs)

    @rule(buffer=st.sampled_from(["marker", "sidecar"]))
    def recover_from_snapshot(self, buffer: str) -> None:
        """Begin again, maybe with another default; a transaction goes on in a partition as it began there."""
        self.world.durable_length = len(self.world.log)
        limits = replace(LIMITS, transaction_buffer=buffer)
        before, self.world.state = self.world.state, restore(snapshot(self.world.state), limits)
        assert is_same(self.world.state, before)
        after_recovery(self.world.state)

    @rule(machine_stops=st.booleans())
    def crash(self, machine_stops: bool) -> None:
        self.world.acknowledged.clear()  # a write into an open transaction may be lost
        self.world.told.clear()
        self.world.crash(machine_stops=machine_stops)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.check()
        for partition in self.world.state.partitions.values():
            before = self.stable.get(partition.partition_id, 0)
            assert before <= partition.last_stable_offset, "the last stable offset never moves back"
            self.stable[partition.partition_id] = partition.last_stable_offset


TestStaging = StagingMachine.TestCase
TestStaging.settings = settings(max_examples=examples(100), stateful_step_count=40)
