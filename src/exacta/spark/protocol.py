"""The sink's transaction protocol on the driver's side (DESIGN.md §5): prepare, commit, abort, recover.

Owns the rules; knows Spark not at all. `sink.py` calls it where Spark calls, `task.py` is its other half.

Theory of operation. Tasks leave their transactions open and tell the driver who they are. The driver writes the
*decision record* in a transaction of its own transactional id; that it commits is the commit point of the batch. Only
then are the tasks' transactions ended. After a crash the next `prepare` reads the record and ends what it names once
more, so the batch is wholly there or was never decided. Three things hold it together:

- `prepare` takes the driver's id over, which fences every older driver: it can decide nothing from there on.
- A task's transaction also commits its *replay marker*, an offset in a group of the task, equal to the batch id. So the
  question "did this transaction commit?" has an answer even when its ids have been fenced or have timed out since.
- Whatever is open and not named by a record is aborted (*swept*) before a batch and after it: losing attempts get no
  call from Spark, and would hold back every reader.

A driver may be a zombie without knowing it, and between asking whether it is and acting a newer one may begin. So
nothing is fenced by its name alone, except by a driver that takes over: first the incarnations (producer id and epoch)
are read, then it is asked whether this driver is still the last one, then exactly these incarnations are fenced. What
a newer driver's tasks take in the meantime has another epoch, and the broker refuses.

A transaction that is named but timed out cannot be committed any more. If that befell all of a batch, the batch is
run again as if never decided. If it befell some, the rest may be run again only where the same rows come into the
same tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from exacta.client.deadline import Backoff, Deadline
from exacta.client.errors import ClientError, KafkaError
from exacta.client.routing import Client
from exacta.client.transactions import (
    CommittedOffset,
    Producer,
    TopicPartition,
    TransactionDescription,
    commit_offset,
    describe_transaction,
    describe_transactions,
    end_transaction,
    end_transactions,
    fetch_offset,
    fetch_offsets,
    fetch_stable_offsets,
    init_producer_id,
    list_transactions,
)
from exacta.protocol.errors import ErrorCode
from exacta.spark import decision as record
from exacta.spark.decision import Decision, DecisionEntry
from exacta.spark.names import QueryNames

#: The driver's own transactions hold two offsets and last milliseconds.
_DRIVER_TIMEOUT_MS = 60_000

#: The codes that say "not by this request", whatever happened before: only the marker knows.
_ENDED_OTHERWISE = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


class SinkError(RuntimeError):
    """The sink cannot go on; the message is one sentence for the user."""


class NewerDriver(SinkError):
    """Another run of the same query has taken over."""

    def __init__(self, query_id: str) -> None:
        super().__init__(
            f"query {query_id} was taken over by a newer run of it (or the cluster let this one wait for longer than "
            f"{_DRIVER_TIMEOUT_MS // 1000} s with its decision); this one decides nothing any more and must end"
        )


class CopiedCheckpoint(SinkError):
    """The checkpoint belongs to another place."""


class HalfCommitted(SinkError):
    """Some transactions of a decided batch timed out and some did not."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What the tasks of a batch, and its commit, must know. Travels with the writer."""

    query_id: str
    driver: Producer
    marker: TopicPartition
    decided_batch: int  # -1: none yet
    committed_tasks: frozenset[int] | None  # None: all of the decided batch; else only these of it


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """What a task says of itself."""

    task: int
    attempt: int
    driver: Producer
    producer: Producer | None  # None: no rows, or its rows were committed already
    rows: int
    replayed: bool = False
    partly: bool = False  # of this batch, only some tasks are committed
    partitions: frozenset[TopicPartition] = frozenset()  # that the transaction must hold


class SinkDriver:
    """The driver's half of the protocol, for one query."""

    def __init__(
        self,
        client: Client,
        query_id: str,
        *,
        location: str,
        marker: TopicPartition,
        transaction_timeout_ms: int,
        replay_deterministic: bool = False,
        moved_from: str | None = None,
    ) -> None:
        self._client = client
        self._names = QueryNames(query_id)
        self._location = location
        self._marker = marker
        self._transaction_timeout_ms = transaction_timeout_ms
        self._replay_deterministic = replay_deterministic
        self._locations = {record.shown_location(each) for each in (location, moved_from) if each is not None}

    # -- step 1 -------------------------------------------------------------------------------------------------------

    def prepare(self) -> Prepared:
        """Fence older drivers, finish what they decided, abort what they left open; return what the tasks need.

        Raises `CopiedCheckpoint`, `HalfCommitted`, `SinkError`, and what the client raises.
        """
        # A copy must be found out before it takes over: it would stop the job that it was copied from.
        self._check_identity()
        driver = init_producer_id(self._client, self._names.driver, transaction_timeout_ms=_DRIVER_TIMEOUT_MS)
        decision = self.read_decision()
        if decision is not None:  # it may be younger than what was looked at before
            self._check_location(decision.location)
        uncommitted = self._roll_forward(driver, decision)
        committed_tasks: frozenset[int] | None = None
        decided_batch = decision.batch_id if decision is not None else -1
        if decision is not None and uncommitted:
            named = frozenset(entry.task for entry in decision.entries)
            committed_tasks = named - uncommitted
            if not committed_tasks:
                # All timed out: nothing of the batch is there, so it is run as if it had never been decided.
                decided_batch = decision.batch_id - 1
                committed_tasks = None
            elif not self._replay_deterministic:
                raise HalfCommitted(
                    f"of batch {decision.batch_id}, {len(uncommitted)} of {len(named)} transactions timed out before "
                    "the query was started again and the others are committed, so a replay is exact only if it puts "
                    "every row into the same task again: set option 'replay.deterministic' to true if it does (no "
                    "shuffle, or one that orders its input), else start it with a new checkpoint, and have the "
                    "committed part of the batch twice"
                )
        return Prepared(
            query_id=self._names.query_id,
            driver=driver,
            marker=self._marker,
            decided_batch=decided_batch,
            committed_tasks=committed_tasks,
        )

    def _check_identity(self) -> None:
        """Refuse where this query's records lie elsewhere, or tell of another checkpoint.

        Records are found by group and partition: under another one, the sink would take the query for a new one.
        """
        heads = fetch_offsets(self._client, self._names.decision_group(0))
        elsewhere = sorted(at.topic for at in heads if at != self._marker)
        if elsewhere:
            raise SinkError(
                f"query {self._names.query_id} has its replay markers in topic '{elsewhere[0]}', not in "
                f"'{self._marker.topic}': set option 'transaction.marker.topic' to '{elsewhere[0]}', wherever its rows "
                "go now, or start it with a new checkpoint"
            )
        head = heads.get(self._marker)
        if head is not None:
            self._check_location(record.location_of(head.metadata))

    def _check_location(self, location: str) -> None:
        if location not in self._locations:
            raise CopiedCheckpoint(
                f"the checkpoint at '{self._location}' is a copy: query {self._names.query_id} has committed from "
                f"'{location}', and two jobs on copies of one checkpoint would skip each other's rows; start this job "
                f"with a new checkpoint, or, if you moved it, set option 'checkpoint.moved.from' to '{location}'"
            )

    def _roll_forward(self, driver: Producer, decision: Decision | None) -> frozenset[int]:
        """Commit what a decision names and abort everything else; return the tasks whose rows are not there."""
        if decision is None:
            self.sweep(driver)
            return frozenset()
        committed = self._committed_tasks(decision)
        open_ones = [entry for entry in decision.entries if entry.task not in committed]
        refused = self.end_all(open_ones) if open_ones else []
        self.sweep(driver)
        return frozenset(entry.task for entry in refused if not self._marker_reached(entry.task, decision.batch_id))

    def _committed_tasks(self, decision: Decision) -> set[int]:
        """Return the tasks of a decision whose marker says, stably, that they are committed."""
        groups = {self._names.marker_group(entry.task): entry.task for entry in decision.entries}
        found = fetch_stable_offsets(self._client, list(groups), self._marker)
        return {
            groups[group]
            for group, offset in found.items()
            if offset is not None and offset.offset >= decision.batch_id
        }

    def _marker_reached(self, task: int, batch_id: int) -> bool:
        """Return whether a task's rows of a batch are committed, waiting until no transaction can change the answer."""
        marker = self._final_offset(self._names.marker_group(task), self._client.deadline())
        return marker is not None and marker.offset >= batch_id

    # -- step 3 -------------------------------------------------------------------------------------------------------

    def commit(self, results: Iterable[TaskResult], batch_id: int, *, tasks: int, reads: str) -> None:
        """Decide a batch of so many tasks and end its transactions; `reads` is a digest of what it covers.

        Raises `NewerDriver` where the decision is refused and `SinkError` where it must not be taken; afterwards
        nothing of the batch is visible, or all of it will be.
        """
        results = list(results)
        live = {
            result.producer: DecisionEntry(
                result.task, result.attempt, result.producer.producer_id, result.producer.producer_epoch
            )
            for result in results
            if result.producer is not None
        }
        earlier = self._committed_before(results, batch_id, tasks=tasks, reads=reads)
        if live:
            entries = (*live.values(), *earlier)
            self._check_open(results)
            location = record.shown_location(self._location)
            self.decide(results[0].driver, Decision(batch_id, tasks, location, reads, entries))
            refused = self.end_all(list(live.values()))
            lost = [entry.task for entry in refused if not self._marker_reached(entry.task, batch_id)]
            if lost:
                raise SinkError(
                    f"the transactions of tasks {lost} of batch {batch_id} were ended by someone else after the batch "
                    "was decided (a time-out, or another run of the query); start the query again"
                )
        if results:
            # The batch is committed; what cannot be swept now will be before the next one.
            with suppress(ClientError):
                self.sweep(results[0].driver)

    def _committed_before(
        self, results: list[TaskResult], batch_id: int, *, tasks: int, reads: str
    ) -> list[DecisionEntry]:
        """Return the entries of an earlier decision of this batch that a new one must go on naming.

        There are some where a part of the batch had timed out: its other tasks only drained their input. Raises
        `SinkError` where what was committed is not what this batch would have written.
        """
        if not any(result.replayed or result.partly for result in results):
            return []
        earlier = self.read_decision()
        if earlier is None or earlier.batch_id != batch_id:
            raise SinkError(f"tasks of batch {batch_id} found it committed, but its decision record is gone")
        if earlier.reads != reads:
            raise SinkError(
                f"batch {batch_id} of this query is committed, but it covered other offsets than the checkpoint names "
                "for it now: was the checkpoint restored from a copy, or did it lose its last file? Start the query "
                "with a new checkpoint"
            )
        if not any(result.partly for result in results):
            return []
        if earlier.tasks != tasks:
            raise SinkError(
                f"batch {batch_id} had {earlier.tasks} tasks when a part of it was committed and has {tasks} now, so "
                "its rows are sliced differently; start the query with the former number of partitions"
            )
        again = {result.task for result in results if result.producer is not None}
        drained = {result.task for result in results if result.replayed}
        missing = sorted({entry.task for entry in earlier.entries} - again - drained)
        if missing:
            raise SinkError(
                f"tasks {missing} of batch {batch_id} had rows when the other part of it was committed and have none "
                "now, so its rows are sliced differently: option 'replay.deterministic' was set to true, and it is not"
            )
        return [entry for entry in earlier.entries if entry.task in drained]

    def _check_open(self, results: Iterable[TaskResult]) -> None:
        """Refuse to decide about a transaction that is not open any more: then nothing of the batch is visible yet.

        Nor about one of the same incarnation that lacks a partition that the task wrote to: it began after the task's
        own was ended (by an operator's tool, say), and most of the rows were in that one.
        """
        written = {result.producer: result.partitions for result in results if result.producer is not None}
        found = describe_transactions(self._client, [producer.transactional_id for producer in written])
        for producer, partitions in written.items():
            state = found[producer.transactional_id]
            if (
                state is None
                or state.state != "Ongoing"
                or _incarnation(producer.transactional_id, state) != producer
                or not partitions <= state.partitions
            ):
                raise SinkError(
                    f"transaction '{producer.transactional_id}' was ended before its batch was decided: by another run "
                    "of the query, or because the batch took longer than option 'kafka.transaction.timeout.ms' "
                    f"({self._transaction_timeout_ms}); nothing of the batch is visible, start the query again"
                )

    def decide(self, driver: Producer, decision: Decision) -> None:
        """Write the decision record; when this returns, the batch is committed whatever happens. Raises
        `NewerDriver`."""
        try:
            self._write_decision(driver, decision)
            end_transaction(self._client, driver, commit=True)
        except KafkaError as error:
            if error.fenced:
                raise NewerDriver(self._names.query_id) from error
            raise

    def _write_decision(self, driver: Producer, decision: Decision) -> None:
        for piece, text in enumerate(record.pack(decision)):
            group = self._names.decision_group(piece)
            commit_offset(self._client, driver, group, self._marker, CommittedOffset(decision.batch_id, text))

    def end_all(self, entries: Collection[DecisionEntry]) -> list[DecisionEntry]:
        """Commit the transactions of a decision; return those that were refused for good."""
        producers = {self._producer_of(entry): entry for entry in entries}
        refused = []
        for producer, error in end_transactions(self._client, list(producers), commit=True).items():
            if error is None:
                continue
            if error.code not in _ENDED_OTHERWISE:
                raise error
            refused.append(producers[producer])
        return refused

    # -- step 4 -------------------------------------------------------------------------------------------------------

    def abort(self, results: Iterable[TaskResult | None], batch_id: int) -> None:
        """Abort what a failed batch left open, unless it was decided.

        Spark calls this also after a commit that raised, with the same results, and with None for tasks that failed.
        Where no task has told which driver it belongs to, nothing is touched: this driver may be a zombie, and what is
        open the newer one's. The next `prepare` sweeps.
        """
        results = list(results)
        driver = next((result.driver for result in results if result is not None), None)
        if driver is None:
            return
        # A decision that is still on its way must not arrive behind our back; and a task of this batch that only now
        # begins finds itself outdated.
        driver = supersede(self._client, driver, transaction_timeout_ms=_DRIVER_TIMEOUT_MS)
        if driver is None:
            return
        decision = self.read_decision()
        protected = frozenset() if decision is None else frozenset(map(self._producer_of, decision.entries))
        self.sweep(driver, protected=protected, silent=[task for task, result in enumerate(results) if result is None])

    def _silent_attempts(self, task: int) -> Iterator[Producer]:
        """Yield the attempts of a task that said nothing: they may be about to open a transaction."""
        listed = list_transactions(self._client, self._names.attempts(task), states=())
        for transactional_id, state in describe_transactions(self._client, listed).items():
            if state is not None:
                yield _incarnation(transactional_id, state)

    # -- shared -------------------------------------------------------------------------------------------------------

    def sweep(
        self, driver: Producer, *, protected: Collection[Producer] = (), silent: Iterable[int] = ()
    ) -> list[Producer]:
        """Abort and fence the open transactions of the query's tasks but the protected ones; return whom it fenced.

        So are the attempts of `silent` tasks, open or not. Nothing is done where `driver` is not the last any more.
        """
        listed = [each for each in list_transactions(self._client, self._names.prefix) if each != self._names.driver]
        states = describe_transactions(self._client, listed) if listed else {}
        found = {_incarnation(each, state) for each, state in states.items() if state is not None}
        for task in silent:
            found.update(self._silent_attempts(task))
        outdated = sorted(found.difference(protected))
        # In this order: what is listed above is no newer driver's if there is none now.
        if not outdated or not is_current(self._client, driver):
            return []
        for producer in outdated:
            self._fence(producer)
        return outdated

    def _fence(self, producer: Producer) -> None:
        """Abort what an incarnation has open and end it; where there is a newer one, nothing."""
        supersede(self._client, producer, transaction_timeout_ms=self._transaction_timeout_ms)

    def _producer_of(self, entry: DecisionEntry) -> Producer:
        return Producer(self._names.attempt(entry.task, entry.attempt), entry.producer_id, entry.producer_epoch)

    def read_decision(self) -> Decision | None:
        """Return the last decision of the query, or None; waits until it is final."""
        deadline = self._client.deadline()
        first = self._final_offset(self._names.decision_group(0), deadline)
        if first is None:
            return None
        pieces = [first.metadata]
        for piece in range(1, record.pieces_of(first.metadata)):
            further = self._final_offset(self._names.decision_group(piece), deadline)
            if further is None or further.offset != first.offset:
                raise record.UnreadableDecision(
                    f"piece {piece} of the decision record of batch {first.offset} is missing"
                )
            pieces.append(further.metadata)
        return record.unpack(first.offset, pieces)

    def _final_offset(self, group: str, deadline: Deadline) -> CommittedOffset | None:
        """Return what a group committed, or None, waiting until no open transaction can change it."""
        backoff = Backoff()
        while True:
            try:
                return fetch_offset(self._client, group, self._marker, stable=True, deadline=deadline)
            except KafkaError as error:
                if error.code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
                    raise
                backoff.wait(deadline, error)


def supersede(client: Client, producer: Producer, *, transaction_timeout_ms: int) -> Producer | None:
    """Abort what an incarnation has open and take its place; return the new one, or None where there is a newer one.

    The abort is what must not hit a newer one, so it goes by EndTxn, which every broker refuses from an older one.
    Apache Kafka grants InitProducerId to an older one while the newer has a transaction open, and aborts that (tried on
    4.4); so the look in between.
    """
    try:
        try:
            end_transaction(client, producer, commit=False)
        except KafkaError as error:
            if error.code != ErrorCode.INVALID_TXN_STATE:  # nothing is open
                raise
        if not is_current(client, producer):
            return None
        return init_producer_id(
            client, producer.transactional_id, transaction_timeout_ms=transaction_timeout_ms, expected=producer
        )
    except KafkaError as error:
        if error.fenced:
            return None
        raise


def is_current(client: Client, producer: Producer) -> bool:
    """Return whether an incarnation is the last one of its transactional id; of a driver: whether it has the query."""
    found = describe_transaction(client, producer.transactional_id)
    return found is not None and _incarnation(producer.transactional_id, found) == producer


def _incarnation(transactional_id: str, state: TransactionDescription) -> Producer:
    return Producer(transactional_id, state.producer_id, state.producer_epoch)
