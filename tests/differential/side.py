"""One broker as a sequence meets it: sends the steps' frames, and tells what came of them in words that both share.

Producer ids, epochs and offsets are numbers of each broker's own: pairs are told by who was given them and as which,
offsets by how many records lie before them (a marker takes an offset too, and Kafka also writes markers of nothing).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages import (
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k22_init_producer_id,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k28_txn_offset_commit,
    k65_describe_transactions,
)
from exacta.protocol.records import HEADER_SIZE, iter_batches
from tests.differential.steps import (
    CLIENTS,
    PARTITIONS,
    AddGroup,
    AddPartitions,
    CommitOffsets,
    End,
    Init,
    PlainOffsets,
    Produce,
    ReadEnd,
    ReadOffsets,
    Step,
)
from tests.kafka.wire import Wire, batch

Pair = tuple[int, int]
NOBODY = "nobody"
NOBODYS = 2**40
"""From here on there are producer ids that no broker has given to anybody: one for each sequence."""

_NOT_YET = {
    ErrorCode.NOT_ENOUGH_REPLICAS,  # so CONCURRENT_TRANSACTIONS is put to older clients, by Produce
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
"""What a client asks again after; Exacta says none of it."""
_PATIENCE_S = 60.0
_ENDING = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_READ_COMMITTED = 1


class Place(NamedTuple):
    """An offset that a broker has answered."""

    partition: int
    offset: int


class Side:
    """A broker, and what its clients have been told by it in the present sequence."""

    def __init__(self, address: tuple[str, int]) -> None:
        """Connect, and wait until both coordinators answer."""
        self._address = address
        self._wire = Wire(address)
        self._numbers = itertools.count()
        self._topics = itertools.count()
        self._new_topic()
        for kind in (0, 1):
            ask = k10_find_coordinator.FindCoordinatorRequest(key="x", key_type=kind)
            self._until_known(lambda ask=ask: self._wire.ask(ask, 3).error_code)

    def close(self) -> None:
        """Hang up."""
        self._wire.socket.close()

    def begin(self) -> None:
        """Begin a sequence: new names, and every client takes its id over."""
        number = next(self._numbers)
        self._name = f"n{number}"
        self._nobodys: Pair = (NOBODYS + number, 0)
        self._pairs: dict[str, list[Pair]] = {client: [] for client in CLIENTS}
        self._next: dict[tuple[str, Pair, int], int] = {}
        self._last: dict[tuple[str, Pair, int], bytes] = {}
        self._settle()
        if self._held_back():
            self._new_topic()  # of a sequence that failed
        self._starts = {partition: self._end_offset(partition, committed=False) for partition in PARTITIONS}
        for client in CLIENTS:
            assert self.run(Init(client=client, version=4))[0] == "NONE"

    def finish(self) -> None:
        """End a sequence: leave nothing open."""
        for client in CLIENTS:
            self.run(Init(client=client, version=4))
        self._settle()
        assert not self._held_back(), f"partitions {self._held_back()} hold readers back for ever"

    def _held_back(self) -> list[int]:
        return [
            partition
            for partition in PARTITIONS
            if self._end_offset(partition, committed=True) != self._end_offset(partition, committed=False)
        ]

    def _new_topic(self) -> None:
        self._topic = f"t{next(self._topics)}"
        topics = [k03_metadata.MetadataRequestTopic(name=self._topic)]
        self._until_known(lambda: self._wire.ask(k03_metadata.MetadataRequest(topics=topics), 9).topics[0].error_code)
        for partition in PARTITIONS:
            self._until_known(lambda partition=partition: self._end(partition, committed=False).error_code)

    def run(self, step: Step) -> tuple[Any, ...]:
        """Send the step's request; return its error code's name, and what else its answer says."""
        try:
            answer: tuple[Any, ...] = getattr(self, f"_{type(step).__name__}")(step)
        except ConnectionError:
            self.close()
            self._wire = Wire(self._address)
            return ("hangs up",)
        return answer

    # -- the steps ----------------------------------------------------------------------------------------------------

    def _Init(self, step: Init) -> tuple[Any, ...]:
        producer_id, epoch = self._pair(step) if step.presents else (-1, -1)
        request = k22_init_producer_id.InitProducerIdRequest(
            transactional_id=self._id(step.client),
            transaction_timeout_ms=60_000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer = self._ask(request, step.version, lambda reply: reply.error_code)
        if answer.error_code == ErrorCode.NONE:
            return (_name(answer.error_code), self._given(step.client, (answer.producer_id, answer.producer_epoch)))
        return (_name(answer.error_code),)

    def _AddPartitions(self, step: AddPartitions) -> tuple[Any, ...]:
        producer_id, epoch = self._pair(step)
        request = k24_add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id(step.client),
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[
                k24_add_partitions_to_txn.AddPartitionsToTxnTopic(name=self._topic, partitions=list(step.partitions))
            ],
        )

        def code(reply: Any) -> int:
            return reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

        return (_name(code(self._ask(request, step.version, code))),)

    def _AddGroup(self, step: AddGroup) -> tuple[Any, ...]:
        producer_id, epoch = self._pair(step)
        request = k25_add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=self._id(step.client),
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=self._group(step.group),
        )
        return (_name(self._ask(request, step.version, lambda reply: reply.error_code).error_code),)

    def _Produce(self, step: Produce) -> tuple[Any, ...]:
        pair = self._pair(step)
        key = (step.client, pair, step.partition)
        sequence = max(0, self._next.get(key, 0) + step.skip)
        records = batch(
            *(b"%d" % number for number in range(step.count)),
            producer_id=pair[0],
            producer_epoch=pair[1],
            base_sequence=sequence,
            transactional=step.transactional,
            timestamp_ms=1_700_000_000_000,
        )
        if step.repeat and key in self._last:
            records = self._last[key]
        data = k00_produce.PartitionProduceData(index=step.partition, records=records)
        request = k00_produce.ProduceRequest(
            transactional_id=self._id(step.client),
            acks=-1,
            timeout_ms=10_000,
            topic_data=[k00_produce.TopicProduceData(name=self._topic, partition_data=[data])],
        )
        answer = self._ask(request, step.version, _produced).responses[0].partition_responses[0]
        if answer.error_code != ErrorCode.NONE:
            return (_name(answer.error_code),)
        if records is not self._last.get(key):
            self._last[key] = records
            self._next[key] = sequence + step.count
        return (_name(answer.error_code), Place(step.partition, answer.base_offset))

    def _CommitOffsets(self, step: CommitOffsets) -> tuple[Any, ...]:
        producer_id, epoch = self._pair(step)
        member = {"member_id": "gone", "generation_id": 3} if step.stale and step.version >= 3 else {}
        entry = k28_txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=step.offset)
        request = k28_txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self._id(step.client),
            group_id=self._group(step.group),
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[k28_txn_offset_commit.TxnOffsetCommitRequestTopic(name=self._topic, partitions=[entry])],
            **member,
        )
        return (_name(_of_first(self._ask(request, step.version, _of_first))),)

    def _End(self, step: End) -> tuple[Any, ...]:
        producer_id, epoch = self._pair(step)
        request = k26_end_txn.EndTxnRequest(
            transactional_id=self._id(step.client), producer_id=producer_id, producer_epoch=epoch, committed=step.commit
        )
        answer = self._ask(request, step.version, lambda reply: reply.error_code)
        # Kafka answers before the markers are written. What comes in between may still join the transaction that has
        # ended (version 1), by chance; there is nothing to compare.
        self._settle()
        if answer.error_code == ErrorCode.NONE and step.version >= 5:
            return (_name(answer.error_code), self._given(step.client, (answer.producer_id, answer.producer_epoch)))
        return (_name(answer.error_code),)

    def _PlainOffsets(self, step: PlainOffsets) -> tuple[Any, ...]:
        entry = k08_offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=step.offset)
        request = k08_offset_commit.OffsetCommitRequest(
            group_id=self._group(step.group),
            topics=[k08_offset_commit.OffsetCommitRequestTopic(name=self._topic, partitions=[entry])],
        )
        return (_name(_of_first(self._ask(request, step.version, _of_first))),)

    def _ReadOffsets(self, step: ReadOffsets) -> tuple[Any, ...]:
        topics = [k09_offset_fetch.OffsetFetchRequestTopic(name=self._topic, partition_indexes=[0])]
        request = k09_offset_fetch.OffsetFetchRequest(
            group_id=self._group(step.group), topics=topics, require_stable=step.stable
        )
        answer = self._ask(request, step.version, lambda reply: reply.error_code).topics[0].partitions[0]
        return (_name(answer.error_code), answer.committed_offset)

    def _ReadEnd(self, step: ReadEnd) -> tuple[Any, ...]:
        end = self._end_offset(step.partition, committed=step.committed)
        return ("NONE", Place(step.partition, end))

    # -- what is there afterwards -------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read what this sequence has put into the partitions, for what follows."""
        self._aborted: dict[int, set[tuple[int, int]]] = {partition: set() for partition in PARTITIONS}
        self._log = {partition: list(self._batches(partition)) for partition in PARTITIONS}

    def records(self, partition: int) -> list[tuple[Any, ...]]:
        """Return the batches, in order."""
        return [
            (self._who(header.producer_id), header.record_count, header.base_sequence, header.transactional)
            for header, _ in self._log[partition]
            if not header.control
        ]

    def ends(self, partition: int, client: str) -> list[str]:
        """Return, in order, what a client wrote and how it ended; markers of nothing are left out."""
        found: list[str] = []
        for header, view in self._log[partition]:
            if self._who(header.producer_id) != client:
                continue
            if not header.control:
                found.append("write" if header.transactional else "plain write")
            elif found and found[-1] == "write":
                found.append("commit" if _commits(view) else "abort")
        return found

    def aborted(self, partition: int) -> list[tuple[Any, ...]]:
        """Return the aborted transactions of this sequence that a reader was told of (it may be told of others)."""
        return sorted(
            (who, self.records_before(Place(partition, first_offset)))
            for producer_id, first_offset in self._aborted[partition]
            if (who := self._who(producer_id)) != NOBODY
        )

    def records_before(self, place: Place) -> int:
        """Return how many records of this sequence lie before an offset."""
        return sum(
            header.record_count
            for header, _ in self._log[place.partition]
            if not header.control and header.base_offset < place.offset
        )

    def _batches(self, partition: int) -> Iterator[tuple[Any, memoryview]]:
        """Read as a read_committed reader does, who sees everything here, since nothing is open."""
        offset, end = self._starts[partition], self._end_offset(partition, committed=False)
        deadline = time.monotonic() + _PATIENCE_S
        while offset < end:
            answer = self._fetch(partition, offset)
            for entry in answer.aborted_transactions or []:
                self._aborted[partition].add((entry.producer_id, entry.first_offset))
            for header, view in iter_batches(bytes(answer.records or b"")):
                yield header, view
                offset = header.last_offset + 1
            assert time.monotonic() < deadline, f"a reader of partition {partition} does not get beyond {offset}"

    def _fetch(self, partition: int, offset: int) -> Any:
        wanted = k01_fetch.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [k01_fetch.FetchTopic(topic=self._topic, partitions=[wanted])]
        request = k01_fetch.FetchRequest(topics=topics, isolation_level=_READ_COMMITTED, max_bytes=1 << 20)
        return self._wire.ask(request, 11).responses[0].partitions[0]

    def _end_offset(self, partition: int, *, committed: bool) -> int:
        return int(self._end(partition, committed=committed).offset)

    def _end(self, partition: int, *, committed: bool) -> Any:
        wanted = k02_list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=-1)
        topics = [k02_list_offsets.ListOffsetsTopic(name=self._topic, partitions=[wanted])]
        request = k02_list_offsets.ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=topics)
        return self._wire.ask(request, 6).topics[0].partitions[0]

    # -- names and numbers --------------------------------------------------------------------------------------------

    def _id(self, client: str) -> str:
        return f"{self._name}-{client}"

    def _group(self, group: str) -> str:
        return f"{self._name}-{group}"

    def _pair(self, step: Step) -> Pair:
        pairs = self._pairs[step.client]
        if step.age >= len(pairs):
            return self._nobodys
        producer_id, epoch = pairs[-1 - max(0, step.age)]
        return (producer_id, epoch + 1) if step.age < 0 else (producer_id, epoch)

    def _given(self, client: str, pair: Pair) -> str:
        """Note that a client was given a pair; return which one it is to the client."""
        pairs = self._pairs[client]
        known = pair in pairs
        if known:
            pairs.remove(pair)
        pairs.append(pair)
        return "known" if known else "new"

    def _who(self, producer_id: int) -> str:
        for client, pairs in self._pairs.items():
            if any(producer_id == known for known, _ in pairs):
                return client
        return NOBODY

    # -- asking -------------------------------------------------------------------------------------------------------

    def _ask(self, request: Any, version: int, code: Any) -> Any:
        """Ask, and ask again while the broker says that it is not ready."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            answer = self._wire.ask(request, version)
            if code(answer) not in _NOT_YET or time.monotonic() > deadline:
                return answer

    def _settle(self) -> None:
        """Wait until every transaction that was ended has ended everywhere (Kafka's answer comes before)."""
        ids = [self._id(client) for client in CLIENTS]
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            request = k65_describe_transactions.DescribeTransactionsRequest(transactional_ids=ids)
            states = self._wire.ask(request, 0).transaction_states
            if not any(state.transaction_state in _ENDING for state in states):
                return
        raise AssertionError(f"transactions are still ending after {_PATIENCE_S:.0f} s")

    def _until_known(self, code: Any) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while code() != ErrorCode.NONE:
            assert time.monotonic() < deadline, "the broker does not get ready"


def _name(code: int) -> str:
    return ErrorCode(code).name


def _produced(reply: Any) -> int:
    return reply.responses[0].partition_responses[0].error_code


def _of_first(reply: Any) -> int:
    return reply.topics[0].partitions[0].error_code


def _commits(view: memoryview) -> bool:
    """Return what a control batch of one record says: its key is version and type, behind five bytes of the record."""
    # length, attributes, timestamp delta, offset delta, key length: one byte each in a marker
    return view[HEADER_SIZE + 8] == 1
