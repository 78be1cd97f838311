"""One query on the cluster: each thing that the sink's protocol asks of the brokers is one call here.

`QueryOnCluster` owns how a call is carried out and which errors it raises. It does not know in which order the protocol
needs the calls (`protocol.py` knows that), and it does not know Spark.

Four rooms lie behind it. `query_records.py` reads and writes the decision record and the replay markers.
`incarnations.py` fences producers and sweeps. `end_together.py` decides a batch and ends its transactions in one step.
`lost_markers.py` mends transactions that a broker has not ended everywhere.
"""

from collections.abc import Collection, Iterable, Sequence

from exacta.client.acknowledging import AcknowledgedRuns
from exacta.client.errors import KafkaError
from exacta.client.routing import Client
from exacta.client.transactions import Producer, TopicPartition, end_transaction, end_transactions
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark.sink import end_together
from exacta.spark.sink.decision import Decision, DecisionEntry
from exacta.spark.sink.errors import EndedBeforeItsTime, NewerDriver
from exacta.spark.sink.incarnations import Sweeper, first_not_open, supersede, take_over
from exacta.spark.sink.lost_markers import settle, settle_ended
from exacta.spark.sink.messages import Written
from exacta.spark.sink.names import QueryNames
from exacta.spark.sink.query_records import Heads, QueryRecords

_ENDED_OTHERWISE = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
"""The codes by which EndTxn says "not by this request". Only the replay marker tells how the transaction ended."""


class QueryOnCluster:
    """The decision record, the replay markers and the transactions of one query; its records lie on `marker`."""

    def __init__(
        self, client: Client, names: QueryNames, marker: TopicPartition, *, transaction_timeout_ms: int
    ) -> None:
        self.client = client
        self.names = names
        self.marker = marker
        self.transaction_timeout_ms = transaction_timeout_ms
        self.records = QueryRecords(client, names, marker)
        self.sweeper = Sweeper(client, names, transaction_timeout_ms=transaction_timeout_ms)

    # --- the driver ---------------------------------------------------------------------------------------------------

    def take_over(self) -> Producer:
        """Take the driver's transactional id over from any holder; return the new driver.

        Raises `SinkError` if the brokers refuse the time-out.
        """
        return take_over(self.client, self.names.driver, transaction_timeout_ms=self.transaction_timeout_ms)

    def supersede(self, driver: Producer) -> Producer | None:
        """Abort what a driver has open and take its place; return the new driver, or None if there is a newer one."""
        return supersede(self.client, driver, transaction_timeout_ms=self.transaction_timeout_ms)

    # --- the decision record ------------------------------------------------------------------------------------------

    def heads(self) -> Heads:
        """Return the first pieces of the query's decision records as they are now, on every partition."""
        return self.records.heads()

    def decision(self) -> Decision | None:
        """Return the last record of the query, or None. The call waits until no transaction can change it."""
        return self.records.decision()

    def put_decision(self, driver: Producer, decision: Decision) -> None:
        """Put a record into the driver's open transaction. The record counts when that transaction commits."""
        self.records.put_decision(driver, decision)

    def settle(self, driver: Producer | None = None) -> None:
        """Abort what `driver` has open and end it on every partition, so that no decision is pending any more.

        Without `driver` that is the incarnation which holds the driver's transactional id now.
        """
        settle(self.client, self.names, self.records, driver)

    def begin(self, driver: Producer, nothing: Decision) -> None:
        """Commit a record that says that the sink has begun and decided nothing; raises `NewerDriver`."""
        self._commit_record(driver, nothing)

    def decide(self, driver: Producer, decision: Decision, shared: frozenset[TopicPartition] = frozenset()) -> None:
        """Commit the decision record, and with it the rows in the driver's own transaction, which are on `shared`.

        When this returns, the batch is committed whatever happens. Raises `NewerDriver`, and `EndedBeforeItsTime`
        if the driver's transaction does not hold its rows.
        """
        self._commit_record(driver, decision, shared)

    def _commit_record(
        self, driver: Producer, decision: Decision, shared: frozenset[TopicPartition] = frozenset()
    ) -> None:
        try:
            self.put_decision(driver, decision)
            if shared:
                # Only now: the record would have begun another transaction if the rows' own was gone.
                self.refuse_unless_open({driver: shared})
            end_transaction(self.client, driver, commit=True)
        except KafkaError as error:
            if error.fenced:
                raise NewerDriver(self.names.name) from error
            raise

    def decide_and_end(
        self, driver: Producer, decision: Decision, written: Written, acknowledged: Sequence[AcknowledgedRuns] = ()
    ) -> bool:
        """Decide a batch, end its transactions, the driver's among them, and acknowledge messages, all in one step.

        Returns False if the broker cannot do that: then nothing is decided. Raises `EndedBeforeItsTime`: then nothing
        of the batch is visible. Raises `NewerDriver`: the same holds unless the broker's machine stopped, and the next
        run looks (decision 0022).
        """
        try:
            refused = end_together.decide_and_end(self.client, self.records, driver, decision, written, acknowledged)
        except KafkaError as error:
            if error.fenced:
                raise NewerDriver(self.names.name) from error
            raise
        if refused:
            raise self._ended_before_its_time(min(refused))
        return refused is not None

    # --- the tasks' transactions --------------------------------------------------------------------------------------

    def refuse_unless_open(self, written: Written) -> None:
        """Raise `EndedBeforeItsTime` unless each of these transactions is open and holds its partitions."""
        not_open = first_not_open(self.client, written)
        if not_open is not None:
            raise self._ended_before_its_time(not_open)

    def roll_forward(self, driver: Producer, decision: Decision) -> frozenset[int]:
        """Commit what a decision names and abort everything else; return the tasks whose rows are not there."""
        committed = self.records.committed_tasks(decision)
        open_ones = [entry for entry in decision.entries if entry.task not in committed]
        refused = self.end_all(open_ones) if open_ones else []
        ended = {entry.task: self.producer_of(entry) for entry in open_ones if entry not in refused}
        if pending := self.records.pending_markers(ended) if ended else []:
            settle_ended(self.client, [ended[task].transactional_id for task in pending])
        self.sweep(driver)
        return self._without_marker(refused, decision.batch_id)

    def end_decided(self, driver: Producer, entries: Collection[DecisionEntry], batch_id: int) -> frozenset[int]:
        """Commit the transactions of a batch that was decided just now; return the tasks whose rows are not there."""
        refused = self.end_all(list(entries))
        if refused:
            # A producer that took an id over in between may hold the marker pending.
            self.sweep(driver, protected=frozenset(map(self.producer_of, entries)))
        return self._without_marker(refused, batch_id)

    def end_all(self, entries: Collection[DecisionEntry]) -> list[DecisionEntry]:
        """Commit the transactions of a decision; return the entries whose transaction was refused for good."""
        producers = {self.producer_of(entry): entry for entry in entries}
        refused = []
        for producer, error in end_transactions(self.client, list(producers), commit=True).items():
            if error is None:
                continue
            if error.code not in _ENDED_OTHERWISE:
                raise error
            refused.append(producers[producer])
        return refused

    def sweep(
        self, driver: Producer, *, protected: Collection[Producer] = (), silent: Iterable[int] = ()
    ) -> list[Producer]:
        """Abort what attempts left open, as `Sweeper.sweep` does; return the producers that were fenced."""
        return self.sweeper.sweep(driver, protected=protected, silent=silent)

    def producer_of(self, entry: DecisionEntry) -> Producer:
        """Return the producer whose transaction an entry of the decision record names."""
        return Producer(self.names.attempt(entry.task, entry.attempt), entry.producer_id, entry.producer_epoch)

    def _without_marker(self, refused: Iterable[DecisionEntry], batch_id: int) -> frozenset[int]:
        return frozenset(entry.task for entry in refused if not self.records.marker_reached(entry.task, batch_id))

    def _ended_before_its_time(self, producer: Producer) -> EndedBeforeItsTime:
        return EndedBeforeItsTime(producer.transactional_id, self.transaction_timeout_ms)
