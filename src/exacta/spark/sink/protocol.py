"""The sink's transaction protocol on the driver's side: prepare, commit, abort, recover.

Owns the rules; knows Spark not at all. `sink.py` calls it where Spark calls, `task.py` is its other half,
`query_records.py` reads and writes what the cluster remembers, `incarnations.py` fences.

Theory of operation. Tasks leave their transactions open and tell the driver who they are. The driver writes the
*decision record* in a transaction of its own transactional id; that it commits is the commit point of the batch. Only
then are the tasks' transactions ended. After a crash the next `prepare` reads the record and ends what it names once
more, so the batch is wholly there or was never decided. Three things hold it together:

- `prepare` takes the driver's id over, which fences every older driver: it can decide nothing from there on.
- A task's transaction also commits its *replay marker*, an offset in a group of the task, equal to the batch id. So the
  question "did this transaction commit?" has an answer even when its ids have been fenced or have timed out since.
- Whatever is open and not named by a record is aborted (*swept*) before a batch and after it: losing attempts get no
  call from Spark, and would hold back every reader.

Where the broker can end several transactions in one step, decision and ends are one (`end_together.py`), and what the
next paragraph tells of cannot happen. `prepare` is the same everywhere: it ends whatever a record names.

A transaction that is named but timed out cannot be committed any more. If that befell all of a batch, the batch is
run again as if never decided. If it befell some, the rest may be run again only where the same rows come into the
same tasks.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress

from exacta.client.errors import ClientError, KafkaError
from exacta.client.routing import Client
from exacta.client.transactions import (
    Producer,
    TopicPartition,
    end_transaction,
    end_transactions,
)
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark.sink import decision as record
from exacta.spark.sink import end_together
from exacta.spark.sink.decision import Decision, DecisionEntry
from exacta.spark.sink.errors import (
    CopiedCheckpoint,
    EndedBeforeItsTime,
    ForeignRecords,
    HalfCommitted,
    NewerDriver,
    SinkError,
)
from exacta.spark.sink.incarnations import Sweeper, first_not_open, supersede, take_over
from exacta.spark.sink.lost_markers import settle, settle_ended
from exacta.spark.sink.messages import Prepared, TaskResult, Written
from exacta.spark.sink.names import QueryNames, shown_ids
from exacta.spark.sink.note import SinkNotes
from exacta.spark.sink.query_records import Heads, QueryRecords

_log = logging.getLogger("exacta.spark")

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


class SinkDriver:
    """The driver's half of the protocol, for one query."""

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        query_id: str,
        location: str,
        marker: TopicPartition,
        transaction_timeout_ms: int,
        replay_deterministic: bool = False,
        moved_from: str | None = None,
        notes: SinkNotes | None = None,
        query_name: str = "",
        application: str = "",
    ) -> None:
        self._client = client
        self._names = QueryNames(name)
        self._query_id = query_id
        self._location = location
        self._marker = marker
        self._transaction_timeout_ms = transaction_timeout_ms
        self.records = QueryRecords(client, self._names, marker)
        self.sweeper = Sweeper(client, self._names, transaction_timeout_ms=transaction_timeout_ms)
        self._replay_deterministic = replay_deterministic
        self._query_name = query_name
        self._application = application
        self._notes = notes  # None: a job without a checkpoint, or whose caller looks after the note
        self._locations = {record.shown_location(each) for each in (location, moved_from) if each is not None}

    # -- step 1 -------------------------------------------------------------------------------------------------------

    def prepare(self) -> Prepared:
        """Fence older drivers, finish what they decided, abort what they left open; return what the tasks need.

        Raises `CopiedCheckpoint`, `HalfCommitted`, `SinkError`, `CheckpointUnreadable`, and what the client raises.
        """
        # A copy must be found out before it takes over: it would stop the job that it was copied from.
        heads = self._check_identity()
        if heads.pending:
            settle(self._client, self._names, self.records)
        driver = take_over(self._client, self._names.driver, transaction_timeout_ms=self._transaction_timeout_ms)
        found = self.records.decision()
        decision = found if found is not None and found.is_one else None
        if decision is not None:  # it may be younger than what was looked at before
            self._check_origin(decision.query_id, decision.location, decision.batch_id)
        if self._notes is not None:
            if found is None or found.query_id != self._query_id:
                if heads.pending:  # what was on its way has not arrived
                    self._notes.check(recorded=False)
                self._begin(driver)
            self._notes.keep()
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
            name=self._names.name,
            query_id=self._query_id,
            driver=driver,
            marker=self._marker,
            decided_batch=decided_batch,
            committed_tasks=committed_tasks,
        )

    def _begin(self, driver: Producer) -> None:
        """Put a record on the cluster that says that the sink has begun and decided nothing."""
        location = record.shown_location(self._location)
        nothing = Decision.none_yet(self._query_id, location, self._query_name, self._application)
        try:
            self.records.put_decision(driver, nothing)
            end_transaction(self._client, driver, commit=True)
        except KafkaError as error:
            if error.fenced:
                raise NewerDriver(self._names.name) from error
            raise
        _log.info(
            "the sink '%s' begins on %s: it has committed nothing there yet, as is normal for a new query",
            self._names.name,
            self._client.bootstrap,
        )

    def _check_identity(self) -> Heads:
        """Refuse where this query's records lie elsewhere or tell of another checkpoint; return them.

        Records are found by group and partition: under another one, the sink would take the query for a new one.
        """
        found = self.records.heads()
        heads = found.by_partition
        elsewhere = sorted(at.topic for at in heads if at != self._marker)
        if elsewhere:
            raise SinkError(
                f"query {self._names.name} has its replay markers in topic '{elsewhere[0]}', not in "
                f"'{self._marker.topic}': set option 'transaction.marker.topic' to '{elsewhere[0]}', wherever its rows "
                "go now, or start it with a new checkpoint"
            )
        head = heads.get(self._marker)
        recorded = found.pending
        if head is not None:
            origin = record.origin_of(head.metadata)
            if origin.decides:  # else whoever's it is, nothing was written under it
                self._check_origin(origin.query_id, origin.location, head.offset)
            recorded = recorded or origin.query_id == self._query_id
        if self._notes is not None:
            self._notes.check(recorded=recorded)
        return found

    def _check_origin(self, query_id: str, location: str, batch_id: int) -> None:
        """Refuse where the records are not this query's, or were written from another place."""
        if query_id != self._query_id:
            raise ForeignRecords(
                f"the job named '{self._names.name}' has committed batches up to {batch_id} as query {query_id}, from "
                f"the checkpoint at '{location}', and the checkpoint at '{self._location}' is of query "
                f"{self._query_id}: was the old one deleted? The new one would write everything once more. Go on with "
                "the old one; or, to begin anew on purpose, run `exacta spark clean --prefix "
                f"{self._names.name}` first or set another 'transactional.id.prefix'"
            )
        if record.shown_location(location) not in self._locations:
            raise CopiedCheckpoint.of(self._query_id, self._location, location)

    def _roll_forward(self, driver: Producer, decision: Decision | None) -> frozenset[int]:
        """Commit what a decision names and abort everything else; return the tasks whose rows are not there."""
        if decision is None:
            self.sweep(driver)
            return frozenset()
        committed = self.records.committed_tasks(decision)
        open_ones = [entry for entry in decision.entries if entry.task not in committed]
        refused = self.end_all(open_ones) if open_ones else []
        ended = {entry.task: self._producer_of(entry) for entry in open_ones if entry not in refused}
        if pending := self.records.pending_markers(ended) if ended else []:
            settle_ended(self._client, [ended[task].transactional_id for task in pending])
        self.sweep(driver)
        return frozenset(
            entry.task for entry in refused if not self.records.marker_reached(entry.task, decision.batch_id)
        )

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
            if result.producer is not None and not result.shared
        }
        shared = _shared_partitions(results, batch_id)
        earlier = self._committed_before(results, batch_id, tasks=tasks, reads=reads)
        if self._notes is not None:  # also of a batch without rows, so that the notes of several sinks can be compared
            self._notes.deciding(batch_id)
        if live or shared:
            location = record.shown_location(self._location)
            entries = (*live.values(), *earlier)
            rows = sum(each.rows for each in results)
            application = self._application or results[0].application
            decision = Decision(
                batch_id, tasks, self._query_id, location, reads, entries, rows, self._query_name, application
            )
            driver = results[0].driver
            written = {producer: result.partitions for result in results if (producer := result.producer) in live}
            if not self.decide_and_end(driver, decision, {driver: shared, **written}):
                self._refuse_if(first_not_open(self._client, written))
                self.decide(driver, decision, shared)
                self._end_decided(driver, live.values(), batch_id)
            ids = [producer.transactional_id for producer in live] or [self._names.driver]
            _log.info("committed batch %d: %d rows of %d tasks, in %s", batch_id, rows, tasks, shown_ids(ids))
        if not all(result.shared for result in results):
            # The batch is committed; what cannot be swept now will be before the next one. (Tasks that share the
            # driver's transaction have none of their own to leave open.)
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
        earlier = self.records.decision()
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

    def decide_and_end(self, driver: Producer, decision: Decision, written: Written) -> bool:
        """Decide a batch and end its transactions, the driver's among them, in one step; return whether that was done.

        It was not where the broker cannot do that. Raises `EndedBeforeItsTime`: then nothing of the batch is visible;
        and `NewerDriver`, where that holds unless the broker's machine stopped: the next run looks (decision 0022).
        """
        try:
            refused = end_together.decide_and_end(self._client, self.records, driver, decision, written)
        except KafkaError as error:
            if error.fenced:
                raise NewerDriver(self._names.name) from error
            raise
        self._refuse_if(min(refused) if refused else None)
        return refused is not None

    def _refuse_if(self, not_open: Producer | None) -> None:
        if not_open is not None:
            raise EndedBeforeItsTime(not_open.transactional_id, self._transaction_timeout_ms)

    def decide(self, driver: Producer, decision: Decision, shared: frozenset[TopicPartition] = frozenset()) -> None:
        """Commit the decision record, and with it the rows in the driver's own transaction, which are on `shared`.

        When this returns, the batch is committed whatever happens. Raises `NewerDriver`, and `EndedBeforeItsTime`
        where the driver's transaction does not hold its rows.
        """
        try:
            self.records.put_decision(driver, decision)
            if shared:
                # Only now: the record would have begun another transaction where the rows' own was gone.
                self._refuse_if(first_not_open(self._client, {driver: shared}))
            end_transaction(self._client, driver, commit=True)
        except KafkaError as error:
            if error.fenced:
                raise NewerDriver(self._names.name) from error
            raise

    def _end_decided(self, driver: Producer, entries: Collection[DecisionEntry], batch_id: int) -> None:
        refused = self.end_all(list(entries))
        if refused:
            # Whoever took an id over in between may hold the marker pending.
            self.sweep(driver, protected=frozenset(map(self._producer_of, entries)))
        lost = [entry.task for entry in refused if not self.records.marker_reached(entry.task, batch_id)]
        if lost:
            raise SinkError(
                f"the transactions of tasks {lost} of batch {batch_id} were ended by someone else after the batch "
                "was decided (a time-out, or another run of the query); start the query again"
            )

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

    def abort(self, results: Iterable[TaskResult | None], batch_id: int, *, driver: Producer | None = None) -> None:
        """Abort what a failed batch left open, unless it was decided.

        Spark calls this also after a commit that raised, with the same results, and with None for tasks that failed.
        Where neither the caller nor a task tells which `driver` prepared the batch, nothing is touched: this one may be
        a zombie, and what is open the newer one's. The next `prepare` sweeps.
        """
        results = list(results)
        driver = next((result.driver for result in results if result is not None), driver)
        if driver is None:
            return
        # A decision that is still on its way must not arrive behind our back; and a task of this batch that only now
        # begins finds itself outdated.
        if self.records.heads().pending:
            settle(self._client, self._names, self.records, driver)
        driver = supersede(self._client, driver, transaction_timeout_ms=self._transaction_timeout_ms)
        if driver is None:
            return
        decision = self.records.decision()
        protected = frozenset() if decision is None else frozenset(map(self._producer_of, decision.entries))
        self.sweep(driver, protected=protected, silent=[task for task, result in enumerate(results) if result is None])

    # -- shared -------------------------------------------------------------------------------------------------------

    def sweep(
        self, driver: Producer, *, protected: Collection[Producer] = (), silent: Iterable[int] = ()
    ) -> list[Producer]:
        """Abort what attempts left open, as `Sweeper.sweep`."""
        return self.sweeper.sweep(driver, protected=protected, silent=silent)

    def _producer_of(self, entry: DecisionEntry) -> Producer:
        return Producer(self._names.attempt(entry.task, entry.attempt), entry.producer_id, entry.producer_epoch)


def _shared_partitions(results: Iterable[TaskResult], batch_id: int) -> frozenset[TopicPartition]:
    """Return the partitions that tasks wrote to in the driver's transaction; raises `SinkError` where two wrote to one.

    Both numbered their records from 0, so that a broker took the second one's for repeats of the first one's.
    """
    writers = Counter(partition for result in results if result.shared for partition in result.partitions)
    twice = sorted(partition for partition, count in writers.items() if count > 1)
    if twice:
        raise SinkError(
            f"in batch {batch_id} several tasks wrote to partition {twice[0].partition} of topic '{twice[0].topic}', "
            "and with 'transaction.scope' batch only one may: give the rows a column 'partition' and every partition "
            "one task, as exacta.spark.one_task_per_partition(df, ...) does"
        )
    return frozenset(writers)
