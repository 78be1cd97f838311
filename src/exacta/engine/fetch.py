"""Fetches: what a reader gets now, and readers that wait for more (min bytes, max wait).

Everything in one answer comes from one durable state. High watermarks, last stable offsets, aborted lists and the
extents to read are taken in one step. Bytes below those offsets never change, so reading may take as long as it needs.

A batch that cannot be read, or that is not as it was acknowledged, is not served. The batches before it are served. A
fetch that begins with it is answered with a STORAGE_ERROR, for that partition alone.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from exacta.core.ids import Body, Offset, PartitionId
from exacta.core.rejections import Rejection
from exacta.core.state.aborted import aborted_between
from exacta.core.state.partition import AbortedTransaction, Partition
from exacta.core.state.state import State
from exacta.engine.counts import Counts
from exacta.engine.deadlines import Deadlines
from exacta.engine.reading import BatchReader, Read
from exacta.engine.visible import Visible
from exacta.ports.journal import Buffer, Extent, JournalReader

LONGEST = 2**63 - 1


class FetchPartition(Struct, gc=False):
    """The offset from which one partition is read, and how much of it.

    The answer holds at most `max_bytes` of it, but at least one batch if it would be empty otherwise. `topic_id` is
    empty where the reader goes by the name. Otherwise a topic that was made anew under the name is not read, not even
    by a fetch that was waiting meanwhile (KIP-516).
    """

    topic: str
    partition: int
    fetch_offset: int
    max_bytes: int
    topic_id: bytes = b""


ALL_BODIES = frozenset(Body)

CONVERTED_GROWTH = 3
"""The most times that records of another protocol are expected to be as long in an answer as in the log. Batches that
turn out longer, and do not fit, are left to the next answer, except for the first one of all that are converted
(KIP-74)."""

Admitted = Callable[[int], None]
"""Is called with the most bytes that may be read now. One batch may always be read."""


class Share(NamedTuple):
    """The records of one partition that are to be converted; `room` is the space for them in the answer, in bytes."""

    batches: list[Buffer]
    offset_count: int
    room: int


Convert = Callable[[list[Share], Callable[[], bool], Callable[[list[list[Buffer]]], None]], None]
"""Calls back, now or later, with the batches of each share as the front's clients read them; none where there was no
room left. It need not call back once the function beside the shares says that nobody wants them any more."""


def _at_once(size: int, admitted: Admitted) -> None:
    admitted(size)


class FetchRequest(Struct):
    """A request that is answered when `min_bytes` are there or `max_wait_ms` are over.

    The answer holds at most `max_bytes` in all, given to the partitions in their order (KIP-74). `admit` is asked, with
    the number of bytes that were found, before they are read into memory. It calls back now, or later, or never.
    """

    partitions: list[FetchPartition]
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    read_committed: bool
    bodies: frozenset[Body] = ALL_BODIES
    """The encodings that the reader understands."""
    convert: Convert | None = None
    """Converts the batches of a partition that has batches of other encodings. None: such a partition is refused."""
    admit: Callable[[int, Admitted], None] = _at_once
    key: int = 0
    """The fetcher's number of a request that waits; negative: nobody wants the answer any more."""


class FetchResult(Struct, gc=False):
    """One partition's share of an answer. `records` are whole batches, one after another."""

    visible: Visible | None = None
    rejection: Rejection | None = None
    records: list[Buffer] = field(default_factory=list)
    aborted: Sequence[AbortedTransaction] = ()
    room: int = 0
    """The room for records that are to be converted; 0: they are answered as they lie in the log."""
    offset_count: int = 0
    """The number of offsets that are to be converted."""


class _Plan(Struct):
    wanted: list[FetchPartition]
    results: list[FetchResult]
    extents: list[Extent]
    owners: list[int]
    """The number of the partition that each extent belongs to."""
    size: int
    final: bool
    """True if waiting would not change the answer, since a partition was refused."""


class _Waiting(Struct, eq=False):
    key: int
    request: FetchRequest
    done: Callable[[list[FetchResult]], None]
    partition_ids: set[PartitionId]


class Fetcher:
    """Answers fetches. The engine tells it which partitions show more, after each durable group."""

    def __init__(
        self,
        state: State,
        journal: JournalReader,
        reader: BatchReader,
        visible: dict[PartitionId, Visible],
        deadlines: Deadlines,
        counts: Counts,
    ) -> None:
        self._state = state
        self._read_bytes = counts.read_bytes
        self._journal = journal
        self._reader = reader
        self._visible = visible
        self._deadlines = deadlines
        self._waiting: dict[PartitionId, dict[int, _Waiting]] = {}
        self._by_key: dict[int, _Waiting] = {}
        self._count = 0
        self._has_finished = False

    def fetch(self, request: FetchRequest, done: Callable[[list[FetchResult]], None]) -> None:
        """Answer now, or when there is enough, or when the time is over."""
        if request.key < 0:
            return
        plan = self._plan(request)
        if plan.final or plan.size >= request.min_bytes or request.max_wait_ms <= 0 or self._has_finished:
            self._read(plan, request, done)
            return
        partition_ids = {
            partition.partition_id
            for wanted in request.partitions
            if (partition := self._state.partition(wanted.topic, wanted.partition)) is not None
        }
        key = request.key = self._count = self._count + 1
        waiting = self._by_key[key] = _Waiting(key, request, done, partition_ids)
        for partition_id in partition_ids:
            self._waiting.setdefault(partition_id, {})[key] = waiting
        # By a number: the deadline stays set when the fetch is answered, and must not keep the answer alive.
        self._deadlines.after(request.max_wait_ms, lambda: self._over(key))

    def advance(self, partition_ids: Sequence[PartitionId]) -> None:
        """Look again at the requests that wait for one of these partitions."""
        if not self._waiting:
            return
        concerned: dict[int, _Waiting] = {}
        for partition_id in partition_ids:
            concerned.update(self._waiting.get(partition_id, ()))
        for waiting in concerned.values():
            plan = self._plan(waiting.request)
            if plan.final or plan.size >= waiting.request.min_bytes:
                self._answer(waiting, plan)

    def finish(self) -> None:
        """Answer every request that waits, or comes later, with the records that there are: the engine stops."""
        self._has_finished = True
        for key in list(self._by_key):
            self._over(key)

    def forget(self, request: FetchRequest) -> None:
        """Do not answer this request any more, if it waits, or is going to."""
        waiting = self._by_key.get(request.key)
        if waiting is not None:
            self._remove(waiting)
        request.key = -1

    def _over(self, key: int) -> None:
        waiting = self._by_key.get(key)
        if waiting is not None:
            self._answer(waiting, self._plan(waiting.request))

    def _answer(self, waiting: _Waiting, plan: _Plan) -> None:
        self._remove(waiting)
        self._read(plan, waiting.request, waiting.done)

    def _remove(self, waiting: _Waiting) -> None:
        del self._by_key[waiting.key]
        for partition_id in waiting.partition_ids:
            by_id = self._waiting[partition_id]
            by_id.pop(waiting.key, None)
            if not by_id:
                del self._waiting[partition_id]

    def _plan(self, request: FetchRequest, most_bytes: int = LONGEST) -> _Plan:
        plan = _Plan(request.partitions, [], [], [], 0, False)
        max_bytes = min(request.max_bytes, most_bytes)
        for wanted in request.partitions:
            result = FetchResult()
            plan.results.append(result)
            partition = self._state.partition(wanted.topic, wanted.partition)
            visible = self._visible.get(partition.partition_id) if partition is not None else None
            if partition is None or visible is None:
                result.rejection = Rejection.UNKNOWN_TOPIC_OR_PARTITION
                plan.final = True
                continue
            if wanted.topic_id and self._state.topics[wanted.topic].topic_id != wanted.topic_id:
                result.rejection = Rejection.INCONSISTENT_TOPIC_ID
                plan.final = True
                continue
            is_foreign = not partition.bodies <= request.bodies
            if is_foreign and request.convert is None:
                result.rejection = Rejection.UNREADABLE_BODY
                plan.final = True
                continue
            result.visible = visible
            # Up to the log's end: what was acknowledged, and is not shown yet, is there to wait for (as in Kafka).
            if not visible.log_start_offset <= wanted.fetch_offset <= partition.next_offset:
                result.rejection = Rejection.OFFSET_OUT_OF_RANGE
                plan.final = True
                continue
            growth = CONVERTED_GROWTH if is_foreign else 1
            self._plan_partition(plan, result, max_bytes, growth, request.read_committed, wanted, partition, visible)
        return plan

    def _plan_partition(
        self,
        plan: _Plan,
        result: FetchResult,
        max_bytes: int,
        growth: int,
        read_committed: bool,
        wanted: FetchPartition,
        partition: Partition,
        visible: Visible,
    ) -> None:
        if wanted.fetch_offset < partition.log_start_offset:
            # While a deletion is being made durable, it is forgotten already which transactions were aborted there, and
            # what has entered there in place.
            return
        end_offset = visible.last_stable_offset if read_committed else visible.high_watermark
        room = min(wanted.max_bytes, max_bytes - plan.size)
        if wanted.fetch_offset >= end_offset or (room <= 0 and plan.size > 0):
            return
        extents = self._journal.find(partition.partition_id, wanted.fetch_offset, end_offset, room // growth)
        size = growth * sum(extent.size for extent in extents)
        if not extents or (size > room and plan.size > 0):
            return  # the next answer begins with it, and then it may be as large as it is
        plan.extents.extend(extents)
        plan.owners.extend([len(plan.results) - 1] * len(extents))
        plan.size += size
        if growth > 1:
            result.room = size
            result.offset_count = extents[-1].last_offset - extents[0].first_offsets[0] + 1
        if read_committed:
            upto = Offset(extents[-1].last_offset + 1)
            result.aborted = aborted_between(partition, Offset(wanted.fetch_offset), upto)

    def _read(self, plan: _Plan, request: FetchRequest, done: Callable[[list[FetchResult]], None]) -> None:
        if not plan.extents:
            done(plan.results)
            return
        found: _Plan | None = plan

        def admitted(most_bytes: int) -> None:
            if found is None and (request.key < 0 or self._has_finished):
                return
            # What was found is to be read in the same turn.
            admissible = found if found and found.size <= most_bytes else self._plan(request, most_bytes)
            self._read_now(request, admissible, done)

        request.admit(plan.size, admitted)
        found = None

    def _read_now(self, request: FetchRequest, plan: _Plan, done: Callable[[list[FetchResult]], None]) -> None:
        if not plan.extents:
            done(plan.results)
            return
        for owner, extent in zip(plan.owners, plan.extents, strict=True):
            self._read_bytes[plan.wanted[owner].topic] += extent.size
        self._reader.read(plan.extents, lambda reads: self._hand_out(request, plan, reads, done))

    def _hand_out(
        self, request: FetchRequest, plan: _Plan, reads: list[Read], done: Callable[[list[FetchResult]], None]
    ) -> None:
        cut: set[int] = set()
        for owner, extent, read in zip(plan.owners, plan.extents, reads, strict=True):
            if owner in cut:
                continue
            result = plan.results[owner]
            if len(read.batches):
                result.records.append(read.batches)
            if read.fault:
                cut.add(owner)
                if not result.records:  # otherwise the next fetch begins with the fault, and is refused
                    wanted = plan.wanted[owner]
                    self._reader.tell(wanted.topic, wanted.partition, extent.first_offsets[0], read)
                    result.rejection = Rejection.STORAGE_ERROR
                    result.aborted = ()
        foreign = [result for result in plan.results if result.room and result.records]
        if not foreign or request.convert is None:
            done(plan.results)
            return

        def is_wanted() -> bool:
            return request.key >= 0

        def converted(batches: list[list[Buffer]]) -> None:
            for result, records in zip(foreign, batches, strict=True):
                result.records = records
                if not records:
                    result.aborted = ()
            done(plan.results)

        shares = [Share(result.records, result.offset_count, result.room) for result in foreign]
        request.convert(shares, is_wanted, converted)
