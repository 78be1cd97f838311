"""Fetches: what a reader gets now, and readers that wait for more (min bytes, max wait).

Owns the reading of what a plan says (`fetch_plan.py`), and the fetches that wait. A fetch of many partitions is planned
in steps, also when it is looked at again because a partition shows more; meanwhile other clients are served.

A batch that cannot be read, or that is not as it was acknowledged, is not served. The batches before it are served. A
fetch that begins with it is answered with a STORAGE_ERROR, for that partition alone.
"""

from collections.abc import Callable, Generator, Sequence, Set
from functools import partial

from msgspec import Struct

from exacta.core.ids import PartitionId
from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.engine.deadlines import Deadlines
from exacta.engine.fetch_plan import LONG_FETCH, LONGEST, Plan, Planner
from exacta.engine.reading import BatchReader, Read
from exacta.ports.journal import Buffer, JournalReader
from exacta.ports.log import Counts, FetchRequest, FetchResult, Share, Visible
from exacta.ports.scheduler import Scheduler

MOST_LOOKED_AT = 5_000
"""The partitions of requests that wait which are looked at again in one turn of the loop, and one request more."""


class _Waiting(Struct, eq=False):
    key: int
    request: FetchRequest
    done: Callable[[list[FetchResult]], None]
    partition_ids: Set[PartitionId | None]
    ids: Sequence[PartitionId | None] = ()
    """The same of a long fetch, in the order of its partitions."""
    is_over: bool = False
    """True: it is answered with what there is."""
    is_looking: bool = False
    """True: the steps of a long fetch are being taken."""
    is_late: bool = False
    """True: since those looked, a partition has come to show more."""


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
        scheduler: Scheduler,
        confirm: Callable[[Callable[[], None]], object],
    ) -> None:
        """`confirm` hands out an answer that refuses something (`Log.confirm`). Another one shows what is durable."""
        self._scheduler = scheduler
        self._confirm = confirm
        self._planner = Planner(state, journal, visible)
        self._read_bytes = counts.read_bytes
        self._reader = reader
        self._deadlines = deadlines
        self._waiting: dict[PartitionId, dict[int, _Waiting]] = {}
        self._long: dict[int, _Waiting] = {}
        """The long fetches, also those that have not looked yet."""
        self._by_key: dict[int, _Waiting] = {}
        self._concerned: dict[int, _Waiting] = {}
        """The requests that wait for partitions which have come to show more since they were looked at."""
        self._looks_soon = False
        self._count = 0
        self._has_finished = False
        self._is_abandoned = False

    def fetch(self, request: FetchRequest, done: Callable[[list[FetchResult]], None]) -> None:
        """Answer now, or when there is enough, or when the time is over."""
        if request.key < 0:
            return
        if len(request.partitions) > LONG_FETCH:
            request.in_steps(self._begin_long(request, done))
            return
        plan = self._plan(request)
        if self._is_enough(plan, request):
            self._read(plan, request, done)
            return
        partition_ids = {each for each in plan.look.ids if each is not None}
        waiting = self._wait(request, done, partition_ids)
        for partition_id in partition_ids:
            self._waiting.setdefault(partition_id, {})[waiting.key] = waiting
        self._over_later(waiting)

    def _is_enough(self, plan: Plan, request: FetchRequest) -> bool:
        return plan.final or plan.size >= request.min_bytes or request.max_wait_ms <= 0 or self._has_finished

    def _wait(
        self,
        request: FetchRequest,
        done: Callable[[list[FetchResult]], None],
        partition_ids: Set[PartitionId | None],
        ids: Sequence[PartitionId | None] = (),
    ) -> _Waiting:
        key = request.key = self._count = self._count + 1
        waiting = self._by_key[key] = _Waiting(key, request, done, partition_ids, ids)
        return waiting

    def _over_later(self, waiting: _Waiting) -> None:
        # By a number: the deadline stays set when the fetch is answered, and must not keep the answer alive.
        key = waiting.key
        self._deadlines.after(waiting.request.max_wait_ms, lambda: self._over(key))

    def advance(self, partition_ids: Sequence[PartitionId]) -> None:
        """Look again at the requests that wait for one of these partitions."""
        for each in list(self._long.values()):
            if not each.partition_ids.isdisjoint(partition_ids):
                self._look_again(each)
        if self._waiting:
            for partition_id in partition_ids:
                self._concerned.update(self._waiting.get(partition_id, ()))
            self._look_on()

    def _look_on(self) -> None:
        """Look at requests that are concerned, and at the rest of them in another turn where they are many."""
        room = MOST_LOOKED_AT
        while self._concerned and room > 0:
            waiting = self._concerned.pop(next(iter(self._concerned)))
            room -= len(waiting.request.partitions)
            plan = self._plan(waiting.request)
            if plan.final or plan.size >= waiting.request.min_bytes:
                self._answer(waiting, plan)
        if self._concerned and not self._looks_soon:
            self._looks_soon = True
            self._scheduler.call_soon(self._look_later)

    def _look_later(self) -> None:
        self._looks_soon = False
        self._look_on()

    def abandon(self) -> None:
        """Answer nothing any more: the engine has failed."""
        self._is_abandoned = True
        self._concerned.clear()

    def finish(self) -> None:
        """Answer every request that waits, or comes later, with the records that there are: the engine stops."""
        self._has_finished = True
        for key in list(self._by_key):
            self._over(key)

    def hurry(self, request: FetchRequest) -> None:
        """Answer this request with what there is, if it waits, or is going to."""
        request.max_wait_ms = 0
        self._over(request.key)

    def forget(self, request: FetchRequest) -> None:
        """Do not answer this request any more, if it waits, or is going to."""
        waiting = self._by_key.get(request.key)
        if waiting is not None:
            self._remove(waiting)
        request.key = -1

    def _over(self, key: int) -> None:
        waiting = self._by_key.get(key)
        if waiting is None:
            return
        if key in self._long:
            waiting.is_over = True
            self._look_again(waiting)
        else:
            self._answer(waiting, self._plan(waiting.request))

    def _answer(self, waiting: _Waiting, plan: Plan) -> None:
        self._remove(waiting)
        self._read(plan, waiting.request, waiting.done)

    def _remove(self, waiting: _Waiting) -> None:
        del self._by_key[waiting.key]
        self._concerned.pop(waiting.key, None)
        if self._long.pop(waiting.key, None) is not None:
            return
        for partition_id in waiting.partition_ids:
            assert partition_id is not None
            by_id = self._waiting[partition_id]
            by_id.pop(waiting.key, None)
            if not by_id:
                del self._waiting[partition_id]

    def _plan(self, request: FetchRequest, most_bytes: int = LONGEST) -> Plan:
        return self._planner.plan(request, self._planner.look(request.partitions), most_bytes)

    # --- long fetches -------------------------------------------------------------------------------------------------

    def _begin_long(
        self, request: FetchRequest, done: Callable[[list[FetchResult]], None]
    ) -> Generator[None, None, None]:
        ids = yield from self._planner.ids_in_steps(request.partitions)
        if request.key < 0:
            return
        waiting = self._wait(request, done, frozenset(ids), ids)
        self._long[waiting.key] = waiting
        if request.max_wait_ms > 0:
            self._over_later(waiting)
        else:
            waiting.is_over = True
        waiting.is_looking = True
        yield from self._look_in_steps(waiting)

    def _look_again(self, waiting: _Waiting) -> None:
        waiting.is_late = True
        if not waiting.is_looking:
            waiting.is_looking = True
            waiting.request.in_steps(self._look_in_steps(waiting))

    def _look_in_steps(self, waiting: _Waiting) -> Generator[None, None, None]:
        """Plan, and answer where that is enough; look once more where a partition shows more meanwhile."""
        request = waiting.request
        while True:
            waiting.is_late = False
            plan = yield from self._planner.plan_in_steps(request, waiting.ids)
            if request.key < 0:
                return
            if waiting.is_over or self._is_enough(plan, request):
                self._remove(waiting)
                self._read_long(plan, request, waiting.done)
                return
            if not waiting.is_late:
                waiting.is_looking = False
                return
            yield

    def _read_long(self, plan: Plan, request: FetchRequest, done: Callable[[list[FetchResult]], None]) -> None:
        """Read what was found in the steps before: it is found once more, since it is to be read in that turn."""
        numbers = list(dict.fromkeys(plan.owners))
        look = plan.look.of(numbers)

        def found(results: list[FetchResult]) -> None:
            for number, result in zip(numbers, results, strict=True):
                plan.results[number] = result
            done(plan.results)

        def again(most_bytes: int = LONGEST) -> Plan:
            once_more = self._planner.plan(request, look, most_bytes)
            once_more.final |= plan.final
            return once_more

        self._read(again(), request, found, again)

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read(
        self,
        plan: Plan,
        request: FetchRequest,
        done: Callable[[list[FetchResult]], None],
        again: Callable[[int], Plan] | None = None,
    ) -> None:
        """Read what is planned, or what `again` plans where there is room only later, or for less."""
        if not plan.extents:
            self._give(plan, done)
            return
        found: Plan | None = plan
        plan_again = again or partial(self._plan, request)

        def admitted(most_bytes: int) -> None:
            if found is None and (request.key < 0 or self._has_finished):
                return
            # What was found is to be read in the same turn.
            admissible = found if found and found.size <= most_bytes else plan_again(most_bytes)
            self._read_now(request, admissible, done)

        request.admit(plan.size, admitted)
        found = None

    def _read_now(self, request: FetchRequest, plan: Plan, done: Callable[[list[FetchResult]], None]) -> None:
        if not plan.extents:
            self._give(plan, done)
            return
        for owner, extent in zip(plan.owners, plan.extents, strict=True):
            self._read_bytes[plan.look.wanted[owner].topic] += extent.size
        self._reader.read(plan.extents, lambda reads: self._hand_out(request, plan, reads, done))

    def _hand_out(
        self, request: FetchRequest, plan: Plan, reads: list[Read], done: Callable[[list[FetchResult]], None]
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
                    wanted = plan.look.wanted[owner]
                    self._reader.tell(wanted.topic, wanted.partition, extent.first_offsets[0], read)
                    result.rejection = Rejection.STORAGE_ERROR
                    plan.final = True
                    result.aborted = ()
        foreign = [result for result in plan.results if result.room and result.records]
        if not foreign or request.convert is None:
            self._give(plan, done)
            return

        def is_wanted() -> bool:
            return request.key >= 0

        def converted(batches: list[list[Buffer]]) -> None:
            for result, records in zip(foreign, batches, strict=True):
                result.records = records
                if not records:
                    result.aborted = ()
            self._give(plan, done)

        shares = [Share(result.records, result.offset_count, result.room) for result in foreign]
        request.convert(shares, is_wanted, converted)

    def _give(self, plan: Plan, done: Callable[[list[FetchResult]], None]) -> None:
        """Hand out an answer. One that refuses nothing shows a durable prefix of the log, which any leader has."""
        if plan.final:
            self._confirm(partial(done, plan.results))
        elif not self._is_abandoned:
            done(plan.results)
