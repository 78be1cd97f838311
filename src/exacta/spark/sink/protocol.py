"""The sink's transaction protocol on the driver's side: prepare, commit, abort, recover.

`SinkDriver` owns the rules and the order of the steps, and does not know Spark. The steps have the numbers of
docs/explanation/spark-sink-protocol.md. `sink.py` calls them when Spark calls. `task.py` is the other half of the
protocol and does step 2. `cluster.py` carries out what a step asks of the brokers.

Theory of operation. Tasks leave their transactions open and tell the driver their producers. The driver writes the
*decision record* in a transaction of its own transactional id. The commit of that transaction is the commit point of
the batch. Only then are the tasks' transactions ended. After a crash the next `prepare` reads the record and ends the
transactions that it names once more, so a batch is wholly there or was never decided. Three rules hold this together:

- `prepare` takes the driver's id over. That fences every older driver, which can decide nothing from there on.
- A task's transaction also commits its *replay marker*, an offset in a group of the task, equal to the batch id. So the
  question "did this transaction commit?" has an answer even when its ids have been fenced or have timed out since.
- Each open transaction that no record names is aborted (*swept*) before a batch and after it. Spark does not call
  attempts that lost, and what they left open would hold back every reader.

If the broker can end several transactions in one step, the decision and the ends are one step (`end_together.py`), and
the case of the next paragraph cannot happen. `prepare` is the same on every cluster: it ends what a record names.

A transaction that is named but timed out cannot be committed any more. If that befell all of a batch, the batch is
run again as if it had never been decided. If it befell some of a batch, the rest may be run again only if the same rows
come into the same tasks.
"""

import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from exacta.client.acknowledging import AcknowledgedRuns
from exacta.client.errors import ClientError, KafkaError
from exacta.client.routing import Client
from exacta.client.transactions import Producer, TopicPartition
from exacta.spark.sink import decision as record
from exacta.spark.sink.cluster import QueryOnCluster
from exacta.spark.sink.decision import Decision, DecisionEntry
from exacta.spark.sink.errors import CopiedCheckpoint, ForeignRecords, HalfCommitted, SinkError
from exacta.spark.sink.later_writes import LastWrites, later_writes
from exacta.spark.sink.messages import Prepared, TaskResult
from exacta.spark.sink.names import QueryNames, shown_ids
from exacta.spark.sink.note import SinkNotes
from exacta.spark.sink.query_records import Heads

logger = logging.getLogger("exacta.spark")


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
        self.cluster = QueryOnCluster(client, QueryNames(name), marker, transaction_timeout_ms=transaction_timeout_ms)
        self._name = name
        self._query_id = query_id
        self._location = location
        self._replay_deterministic = replay_deterministic
        self._query_name = query_name
        self._application = application
        self._notes = notes  # None: a job without a checkpoint, or one whose caller looks after the note
        self._locations = {record.shown_location(each) for each in (location, moved_from) if each is not None}

    # --- step 1: prepare ----------------------------------------------------------------------------------------------

    def prepare(self) -> Prepared:
        """Fence older drivers, finish what they decided, abort what they left open; return what the tasks need.

        Raises `CopiedCheckpoint`, `HalfCommitted`, `SinkError`, `CheckpointUnreadable`, and what the client raises.
        """
        # A copy must be found out before it takes over: it would stop the job that it was copied from.
        heads = self._check_identity()
        if heads.pending:
            self.cluster.settle()
        driver = self.cluster.take_over()
        found = self.cluster.decision()
        decision = found if found is not None and found.is_one else None
        if decision is not None:  # it may be younger than what was looked at before
            self._check_origin(decision.query_id, decision.location, decision.batch_id)
        if self._notes is not None:
            if found is None or found.query_id != self._query_id:
                if heads.pending:  # what was on its way has not arrived
                    self._notes.check(recorded=False, later=self._later_writes)
                self._begin(driver)
            self._notes.keep()
        decided_batch, committed_tasks = self._recover(driver, decision)
        return Prepared(
            name=self._name,
            query_id=self._query_id,
            driver=driver,
            marker=self.cluster.marker,
            decided_batch=decided_batch,
            committed_tasks=committed_tasks,
        )

    def _recover(self, driver: Producer, decision: Decision | None) -> tuple[int, frozenset[int] | None]:
        """Finish what older drivers left: roll the decided batch forward and sweep everything else.

        Returns the last batch that counts as decided (-1: none), and which of its tasks are committed (None: all).
        Raises `HalfCommitted`.
        """
        if decision is None:
            self.cluster.sweep(driver)
            return -1, None
        uncommitted = self.cluster.roll_forward(driver, decision)
        if not uncommitted:
            return decision.batch_id, None
        named = frozenset(entry.task for entry in decision.entries)
        if named == uncommitted:
            # All timed out: nothing of the batch is there, so it is run as if it had never been decided.
            return decision.batch_id - 1, None
        if not self._replay_deterministic:
            raise HalfCommitted(
                f"of batch {decision.batch_id}, {len(uncommitted)} of {len(named)} transactions timed out before "
                "the query was started again and the others are committed, so a replay is exact only if it puts "
                "every row into the same task again: set option 'replay.deterministic' to true if it does (no "
                "shuffle, or one that orders its input), else start it with a new checkpoint, and have the "
                "committed part of the batch twice"
            )
        return decision.batch_id, named - uncommitted

    def _begin(self, driver: Producer) -> None:
        """Put a record on the cluster that says that the sink has begun and decided nothing."""
        location = record.shown_location(self._location)
        self.cluster.begin(driver, Decision.none_yet(self._query_id, location, self._query_name, self._application))
        logger.info(
            "the sink '%s' begins on %s: it has committed nothing there yet, as is normal for a new query",
            self._name,
            self.cluster.client.bootstrap,
        )

    def _check_identity(self) -> Heads:
        """Refuse if this query's records lie elsewhere or tell of another checkpoint; return their first pieces.

        Records are found by group and partition. Under another partition the sink would take the query for a new one.
        """
        found = self.cluster.heads()
        heads = found.by_partition
        elsewhere = sorted(at.topic for at in heads if at != self.cluster.marker)
        if elsewhere:
            raise SinkError(
                f"query {self._name} has its replay markers in topic '{elsewhere[0]}', not in "
                f"'{self.cluster.marker.topic}': set option 'transaction.marker.topic' to '{elsewhere[0]}', wherever "
                "its rows go now, or start it with a new checkpoint"
            )
        head = heads.get(self.cluster.marker)
        recorded = found.pending
        if head is not None:
            origin = record.origin_of(head.metadata)
            if origin.decides:  # else nothing was written under its id
                self._check_origin(origin.query_id, origin.location, head.offset)
            recorded = recorded or origin.query_id == self._query_id
        if self._notes is not None:
            self._notes.check(recorded=recorded, later=self._later_writes)
        return found

    def _later_writes(self, batch_id: int, last: LastWrites | None) -> str | None:
        try:
            return later_writes(self.cluster.client, self.cluster.names, self.cluster.marker, batch_id, last)
        except KafkaError as error:  # a sink may be permitted to write, and not to read
            logger.warning(
                "the cluster has forgotten what the sink '%s' has committed, and whether its checkpoint is older than "
                "that could not be looked up: %s",
                self._name,
                error,
            )
            return None

    def _check_origin(self, query_id: str, location: str, batch_id: int) -> None:
        """Refuse where the records are not this query's, or were written from another place."""
        if query_id != self._query_id:
            raise ForeignRecords(
                f"the job named '{self._name}' has committed batches up to {batch_id} as query {query_id}, from "
                f"the checkpoint at '{location}', and the checkpoint at '{self._location}' is of query "
                f"{self._query_id}: was the old one deleted? The new one would write everything once more. Go on with "
                "the old one; or, to begin again on purpose, run `exacta spark clean --prefix "
                f"{self._name}` first or set another 'transactional.id.prefix'"
            )
        if record.shown_location(location) not in self._locations:
            raise CopiedCheckpoint.of(self._query_id, self._location, location)

    # --- step 3: commit -----------------------------------------------------------------------------------------------

    def commit(
        self,
        results: Iterable[TaskResult],
        batch_id: int,
        *,
        tasks: int,
        reads: str,
        acknowledged: Sequence[AcknowledgedRuns] = (),
    ) -> None:
        """Decide a batch of this many tasks and end its transactions; `reads` is a digest of what it covers.

        Messages are acknowledged with it, also with a batch that has no rows.

        Raises `NewerDriver` if the decision is refused and `SinkError` if it must not be taken. Afterwards nothing of
        the batch is visible, or all of it will be.
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
        if not (live or shared or acknowledged):
            if self._notes is not None:  # so that the notes of several sinks can be compared
                self._notes.deciding_nothing(batch_id)
        else:
            location = record.shown_location(self._location)
            entries = (*live.values(), *earlier)
            rows = sum(each.rows for each in results)
            application = self._application or results[0].application
            decision = Decision(
                batch_id, tasks, self._query_id, location, reads, entries, rows, self._query_name, application
            )
            driver = results[0].driver
            written = {producer: result.partitions for result in results if (producer := result.producer) in live}
            if self._notes is not None:
                topics = {each.topic for result in results for each in result.partitions}
                self._notes.deciding(batch_id, self.last_writes(driver, decision, topics))
            if not self.cluster.decide_and_end(driver, decision, {driver: shared, **written}, acknowledged):
                _refuse_alone(acknowledged, batch_id, len(written))
                self.cluster.refuse_unless_open(written)
                self.cluster.decide(driver, decision, shared)
                _refuse_if_lost(self.cluster.end_decided(driver, live.values(), batch_id), batch_id)
            ids = [producer.transactional_id for producer in live] or [self.cluster.names.driver]
            logger.info("committed batch %d: %d rows of %d tasks, in %s", batch_id, rows, tasks, shown_ids(ids))
        if not all(result.shared for result in results):
            # The batch is committed; what cannot be swept now will be before the next one. (Tasks that share the
            # driver's transaction have none of their own to leave open.)
            with suppress(ClientError):
                self.cluster.sweep(results[0].driver)

    def last_writes(self, driver: Producer, decision: Decision, topics: Collection[str]) -> LastWrites | None:
        """Return what a note says of a batch that was decided, or is about to be, and written to `topics`."""
        producers = [driver, *map(self.cluster.producer_of, decision.entries)]
        return LastWrites.of(self.cluster.client, producers, topics, int(time.time() * 1000))

    def _committed_before(
        self, results: list[TaskResult], batch_id: int, *, tasks: int, reads: str
    ) -> list[DecisionEntry]:
        """Return the entries of an earlier decision of this batch that a new one must go on naming.

        There are some if a part of the batch had timed out: its other tasks only drained their input. Raises
        `SinkError` if the committed part is not what this batch would have written.
        """
        if not any(result.replayed or result.partly for result in results):
            return []
        earlier = self.cluster.decision()
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

    # --- step 4: abort ------------------------------------------------------------------------------------------------

    def abort(self, results: Iterable[TaskResult | None], *, driver: Producer | None = None) -> None:
        """Abort what a failed batch left open, unless it was decided.

        Spark calls this also after a commit that raised, with the same results, and with None for tasks that failed. If
        neither the caller nor a task tells which `driver` prepared the batch, nothing is touched: this driver may be a
        zombie, and the open transactions those of a newer one. The next `prepare` sweeps.
        """
        results = list(results)
        driver = next((result.driver for result in results if result is not None), driver)
        if driver is None:
            return
        # A decision that is still on its way must not arrive behind our back; and a task of this batch that only now
        # begins finds itself outdated.
        if self.cluster.heads().pending:
            self.cluster.settle(driver)
        driver = self.cluster.supersede(driver)
        if driver is None:
            return
        decision = self.cluster.decision()
        protected = frozenset() if decision is None else frozenset(map(self.cluster.producer_of, decision.entries))
        silent = [task for task, result in enumerate(results) if result is None]
        self.cluster.sweep(driver, protected=protected, silent=silent)


def _refuse_alone(acknowledged: Sequence[AcknowledgedRuns], batch_id: int, tasks: int) -> None:
    if acknowledged:
        raise SinkError(
            f"batch {batch_id}, of {tasks} tasks, has too many transactions or partitions for one step, and messages "
            "are acknowledged in the same step only: give it fewer tasks, or set option 'transaction.scope' to batch"
        )


def _refuse_if_lost(tasks: Collection[int], batch_id: int) -> None:
    if tasks:
        raise SinkError(
            f"the transactions of tasks {sorted(tasks)} of batch {batch_id} were ended by someone else after the batch "
            "was decided (a time-out, or another run of the query); start the query again"
        )


def _shared_partitions(results: Iterable[TaskResult], batch_id: int) -> frozenset[TopicPartition]:
    """Return the partitions that tasks wrote to in the driver's transaction; raises `SinkError` if two wrote to one.

    Both tasks numbered their records from 0, so a broker took the second task's for repeats of the first task's.
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
