"""Deciding a batch and ending its transactions in one step: what readers see; refusals and lost answers."""

import threading

import confluent_kafka
import pyarrow as pa
import pytest

from exacta.client.errors import KafkaError
from exacta.client.routing import Client, Leader
from exacta.client.topics import LATEST, list_offsets
from exacta.client.transaction_set import end_transactions_at_once
from exacta.client.transactions import TopicPartition, init_producer_id
from exacta.protocol.kafka.committed import visible_batches
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.spark.options import SinkOptions
from exacta.spark.sink import end_together
from exacta.spark.sink.errors import EndedBeforeItsTime, NewerDriver
from exacta.spark.sink.task import write_task
from tests.conformance.brokers import ON_SIDECAR
from tests.spark.clusters import ELSEWHERE, held_back, new_topic, on_marker_topics

pytestmark = pytest.mark.skipif(bool(ELSEWHERE), reason="Exacta's own API")

PARTITIONS = 12
TASKS = 4


# --- what readers see -------------------------------------------------------------------------------------------------


def write_everywhere(query, prepared, batch_id, task):
    """Write one row of a task to every partition."""
    options = SinkOptions(bootstrap=query.client.bootstrap, topic=query.topic, transaction_timeout_ms=60_000)
    columns = [pa.array([b"%d" % batch_id] * PARTITIONS), pa.array(range(PARTITIONS), pa.int32())]
    batches = iter([pa.RecordBatch.from_arrays(columns, names=["value", "partition"])])
    return write_task(query.client, options, prepared, batches, batch_id=batch_id, task=task, attempt=0)


class Reader:
    """A read_committed reader of all partitions: one request at a time, each of which must show whole batches."""

    def __init__(self, query):
        self._client = Client(query.client.bootstrap)
        self._topic = query.topic
        self._client.refresh([self._topic], self._client.deadline())  # by which its id is known
        self._topic_id = self._client.topic_id(self._topic)
        self.looks = 0

    def look(self):
        """Return the last stable offsets of one ListOffsets, and the committed records of one Fetch, by partition."""
        self.looks += 1
        partitions = [TopicPartition(self._topic, index) for index in range(PARTITIONS)]
        stable = list_offsets(self._client, partitions, LATEST)
        assert self._topic_id is not None
        asked = [FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in range(PARTITIONS)]
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=64 << 20,
            isolation_level=1,
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic=self._topic, topic_id=self._topic_id, partitions=asked)],
        )
        deadline = self._client.deadline()
        reply = self._client.connection(Leader(self._topic, 0), deadline).call(request, deadline)
        records = []
        for entry in reply.responses[0].partitions:
            aborted = [(each.producer_id, each.first_offset) for each in entry.aborted_transactions or ()]
            found = visible_batches(memoryview(entry.records or b""), aborted, committed_only=True)
            records.append(sum(header.record_count for header, _ in found))
        return [stable[each] for each in partitions], records

    def check(self):
        """Look once; return how many batches there are."""
        stable, records = self.look()
        # One record of each task, and its marker where there are any, a batch and partition.
        assert len(set(stable)) == 1
        assert stable[0] % (TASKS if ON_SIDECAR else 2 * TASKS) == 0
        assert len(set(records)) == 1
        assert records[0] % TASKS == 0
        return records[0] // TASKS

    def close(self):
        self._client.close()


@pytest.fixture
def everywhere(query):
    query.topic = new_topic(query.client.bootstrap, PARTITIONS)
    return query


def test_a_reader_sees_whole_batches_only(everywhere):
    query, reader, done, failures = everywhere, Reader(everywhere), threading.Event(), []

    def read():
        seen = 0
        try:
            while not done.is_set():
                now = reader.check()
                assert now >= seen
                seen = now
        except BaseException as failure:  # noqa: BLE001 - it is raised below
            failures.append(failure)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for batch_id in range(12):
            prepared = query.driver().prepare()
            results = [write_everywhere(query, prepared, batch_id, task) for task in range(TASKS)]
            query.driver().commit(results, batch_id, tasks=TASKS, reads="these")
    finally:
        done.set()
        thread.join()
    assert failures == []
    assert reader.check() == 12
    assert reader.looks > 12
    reader.close()


def test_that_reader_finds_a_batch_of_which_a_part_has_ended(everywhere):
    query, reader = everywhere, Reader(everywhere)
    prepared = query.driver().prepare()
    results = [write_everywhere(query, prepared, 0, task) for task in range(TASKS)]
    assert reader.check() == 0
    end_transactions_at_once(query.client, {results[0].producer: ()}, commit=True)
    with pytest.raises(AssertionError):
        reader.check()
    reader.close()


@on_marker_topics
@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_an_older_transaction_holds_back_its_partition_of_a_batch(everywhere, outcome):
    query, reader = everywhere, Reader(everywhere)
    older = confluent_kafka.Producer({"bootstrap.servers": query.client.bootstrap, "transactional.id": "older"})
    older.init_transactions()
    older.begin_transaction()
    older.produce(query.topic, b"older", partition=0)
    assert older.flush(60) == 0
    prepared = query.driver().prepare()
    results = [write_everywhere(query, prepared, 0, task) for task in range(TASKS)]
    query.driver().commit(results, 0, tasks=TASKS, reads="these")
    assert reader.look() == ([0] + [2 * TASKS] * (PARTITIONS - 1), [0] + [TASKS] * (PARTITIONS - 1))
    older.commit_transaction(60) if outcome == "commit" else older.abort_transaction(60)
    committed = outcome == "commit"
    assert reader.look() == (
        [2 * TASKS + 2] + [2 * TASKS] * (PARTITIONS - 1),
        [TASKS + committed] + [TASKS] * (PARTITIONS - 1),
    )
    reader.close()


# --- refusals and losses ----------------------------------------------------------------------------------------------


def begun(query):
    """Prepare a batch of three tasks that have written."""
    prepared = query.driver().prepare()
    return prepared, [query.task(prepared, 0, task, [task]) for task in range(3)]


def commit(query, results):
    query.driver().commit(results, 0, tasks=3, reads="these")


def run_again(query):
    commit(query, begun(query)[1])
    assert query.rows() == [0, 1, 2]


def test_a_batch_takes_no_other_end(query, monkeypatch):
    """Neither a look at what is open, nor ends one by one."""
    for name in ("first_not_open", "end_transaction", "end_transactions"):
        monkeypatch.setattr(f"exacta.spark.sink.cluster.{name}", lambda *_, **__: pytest.fail("not needed"))
    run_again(query)


@pytest.mark.parametrize("gone_on", [False, True])
def test_a_batch_whose_answer_was_lost_is_committed(query, monkeypatch, gone_on):
    """The same holds if the repeat is refused because an operator's tool has taken an id over in between."""
    end = end_transactions_at_once

    def twice(client, written, **named):
        assert end(client, written, **named) == {}
        if gone_on:
            init_producer_id(client, query.names.attempt(1, 0), transaction_timeout_ms=60_000)
        refused = end(client, written, **named)
        assert bool(refused) is gone_on
        return refused

    monkeypatch.setattr(end_together, "end_transactions_at_once", twice)
    run_again(query)


def test_of_a_batch_with_a_transaction_that_timed_out_nothing_is_visible(query):
    _, results = begun(query)
    init_producer_id(query.client, query.names.attempt(1, 0), transaction_timeout_ms=60_000)
    with pytest.raises(EndedBeforeItsTime, match=r"-1-0' was ended before its batch was decided"):
        commit(query, results)
    assert query.driver().cluster.heads().by_partition == {}
    query.driver().abort(results)
    assert held_back(query.client.bootstrap, query.topic) == {}
    assert query.driver().prepare().decided_batch == -1
    run_again(query)


def test_a_newer_driver_that_begins_before_the_step(query, monkeypatch):
    _, results = begun(query)
    end = end_transactions_at_once

    def begin_first(client, written, **named):
        query.driver().prepare()
        return end(client, written, **named)

    monkeypatch.setattr(end_together, "end_transactions_at_once", begin_first)
    with pytest.raises(NewerDriver):
        commit(query, results)
    monkeypatch.undo()
    run_again(query)


def test_too_many_for_one_step_are_ended_one_by_one(query, monkeypatch):
    def refuse(client, written, **named):
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "a test wants it so")

    monkeypatch.setattr(end_together, "end_transactions_at_once", refuse)
    run_again(query)


def test_any_other_error_decides_nothing(query, monkeypatch):
    def refuse(client, written, **named):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a test wants it so")

    _, results = begun(query)
    monkeypatch.setattr(end_together, "end_transactions_at_once", refuse)
    with pytest.raises(KafkaError):
        commit(query, results)
    monkeypatch.undo()
    query.driver().abort(results)
    assert query.driver().prepare().decided_batch == -1
    run_again(query)
