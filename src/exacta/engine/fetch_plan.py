"""The plan of a fetch: what readers see of each partition, and which of its batches fit into the answer.

Owns the choice of batches. Owns neither reading nor waiting (`fetch.py`).

Theory of operation. A `Look` is taken in one step: it holds what readers see of all partitions at that moment, and so
everything in an answer comes from one durable state. The rest may be done later: bytes below the offsets of a look
never change, and what has been deleted meanwhile is not found. A fetch of more than `LONG_FETCH` partitions is planned
in steps, and its answer has records of at most `MOST_WITH_RECORDS` partitions: then one step can find and read them.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from exacta.core.ids import Offset, PartitionId
from exacta.core.rejections import Rejection
from exacta.core.state.aborted import aborted_between
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.engine.visible import visible_of
from exacta.ports.journal import Extent, JournalReader
from exacta.ports.log import FetchPartition, FetchRequest, FetchResult, Visible

LONGEST = 2**63 - 1

LONG_FETCH = 1_000
"""A fetch of more partitions is planned in steps, each of which looks at this many."""

MOST_WITH_RECORDS = 1_000
"""One answer has records of at most this many partitions. Those that follow have theirs in the next answer, as where an
answer has no room left: a client asks for the partitions first that it has got no records of (KIP-74)."""

CONVERTED_GROWTH = 3
"""The most times that records of another protocol are expected to be as long in an answer as in the log. Batches that
turn out longer, and do not fit, are left to the next answer, except for the first one of all that are converted
(KIP-74)."""


class Look(NamedTuple):
    """The offsets that readers see of these partitions, all at one moment.

    None: there is no such partition, or not durably yet.
    """

    wanted: Sequence[FetchPartition]
    ids: Sequence[PartitionId | None]
    seen: Sequence[Visible | None]

    def of(self, numbers: Sequence[int]) -> "Look":
        """Return the same look at some of the partitions, by their numbers."""
        wanted, ids, seen = self
        return Look(
            [wanted[each] for each in numbers], [ids[each] for each in numbers], [seen[each] for each in numbers]
        )


class Plan(Struct):
    """The extents that are to be read, and what the answer says besides them."""

    look: Look
    results: list[FetchResult] = field(default_factory=list)
    extents: list[Extent] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    """The number of the partition that each extent belongs to."""
    size: int = 0
    with_records: int = 0
    """The number of partitions that extents belong to."""
    final: bool = False
    """True if waiting would not change the answer, since a partition was refused."""


class Planner:
    """Makes plans. `visible` is what readers see of each partition now."""

    def __init__(self, state: State, journal: JournalReader, visible: Mapping[PartitionId, Visible]) -> None:
        self._state = state
        self._journal = journal
        self._visible = visible

    def look(self, wanted: Sequence[FetchPartition]) -> Look:
        """Look at partitions now."""
        return self._look(wanted, self._ids(wanted))

    def ids_in_steps(self, wanted: Sequence[FetchPartition]) -> Generator[None, None, list[PartitionId | None]]:
        """Return the ids of partitions, a part of them in each step; None for one that is not there."""
        ids: list[PartitionId | None] = []
        for begin in range(0, len(wanted), LONG_FETCH):
            ids += self._ids(wanted[begin : begin + LONG_FETCH])
            yield
        return ids

    def plan(self, request: FetchRequest, look: Look, most_bytes: int = LONGEST) -> Plan:
        """Return the plan of what is looked at: all of it in this step."""
        plan = Plan(look)
        self._fill(plan, request, range(len(look.wanted)), most_bytes)
        return plan

    def plan_in_steps(self, request: FetchRequest, ids: Sequence[PartitionId | None]) -> Generator[None, None, Plan]:
        """Look at partitions now, and plan a part of them in each step."""
        plan = Plan(self._look(request.partitions, ids))
        count = len(ids)
        for begin in range(0, count, LONG_FETCH):
            yield
            self._fill(plan, request, range(begin, min(begin + LONG_FETCH, count)), LONGEST)
        return plan

    def _ids(self, wanted: Sequence[FetchPartition]) -> list[PartitionId | None]:
        partition_of = self._state.partition
        found = [partition_of(each.topic, each.partition) for each in wanted]
        return [None if each is None else each.partition_id for each in found]

    def _look(self, wanted: Sequence[FetchPartition], ids: Sequence[PartitionId | None]) -> Look:
        return Look(wanted, ids, visible_of(self._visible, ids))

    def _fill(self, plan: Plan, request: FetchRequest, numbers: range, most_bytes: int) -> None:
        """Plan the partitions of these numbers, which are the next ones."""
        max_bytes = min(request.max_bytes, most_bytes)
        wanted_ones, ids, seen = plan.look
        for number in numbers:
            wanted, visible = wanted_ones[number], seen[number]
            result = FetchResult()
            plan.results.append(result)
            partition = None if visible is None else self._state.partitions.get(ids[number])  # type: ignore[arg-type]
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
            self._take_batches(plan, result, max_bytes, growth, request.read_committed, wanted, partition, visible)

    def _take_batches(
        self,
        plan: Plan,
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
        if wanted.fetch_offset >= end_offset or (room <= 0 and plan.size > 0) or plan.with_records >= MOST_WITH_RECORDS:
            return
        extents = self._journal.find(partition.partition_id, wanted.fetch_offset, end_offset, room // growth)
        size = growth * sum(extent.size for extent in extents)
        if not extents or (size > room and plan.size > 0):
            return  # the next answer begins with it, and then it may be as large as it is
        plan.extents.extend(extents)
        plan.owners.extend([len(plan.results) - 1] * len(extents))
        plan.size += size
        plan.with_records += 1
        if growth > 1:
            result.room = size
            result.offset_count = extents[-1].last_offset - extents[0].first_offsets[0] + 1
        if read_committed:
            upto = Offset(extents[-1].last_offset + 1)
            result.aborted = aborted_between(partition, Offset(wanted.fetch_offset), upto)
