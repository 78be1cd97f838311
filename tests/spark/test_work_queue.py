"""`exacta.spark.write` acknowledges the messages of a work queue together with a micro-batch: both or neither.

Without Spark. `test_work_queue_in_spark.py` kills a real one.
"""

import itertools
from collections.abc import Callable
from typing import Any, cast

import pulsar
import pytest

import exacta
from exacta.client import connection
from exacta.client.errors import ConnectionLost
from exacta.client.routing import Client
from exacta.client.transactions import list_transactions
from exacta.protocol.kafka.messages.k17790_join_transaction import JoinTransactionResponse
from exacta.protocol.kafka.messages.k17791_acknowledge_messages import (
    AcknowledgeMessagesRequest,
    AcknowledgeMessagesResponse,
)
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.spark import clients, write
from exacta.spark.error_sentences import ClusterError
from exacta.spark.options import OptionError
from exacta.spark.options.foreach_batch import parse_foreach_batch
from exacta.spark.sink.errors import SinkError
from tests.conformance.brokers import ON_KAFKA
from tests.pulsar.wire import Wire
from tests.shares import SHARES, chosen
from tests.spark.clusters import check_exactly, held_back, new_topic
from tests.spark.foreach_batch_by_hand import Frame, Query, Spark, plan, restarted
from tests.spark.work_queue import NAME, TIMEOUT_MS, WorkQueue

MESSAGES = [100, 101, 102]
ALONE, BY_TASKS = {"driver.rows": 100}, {"driver.rows": 0}
WAYS = pytest.mark.parametrize("way", [ALONE, BY_TASKS], ids=["alone", "by tasks"])


class Crash(BaseException):
    """The driver's process is killed. No `Exception`: nobody may handle it."""


class Killer:
    """Comes between two requests of a driver: when this many have been answered, something happens once."""

    def __init__(self, monkeypatch):
        self.after: int | None = None
        self.happens: Callable[[], object] | None = None
        self.count, self.is_dead = 0, False
        send = connection.Connection.send

        def watched(this, *arguments, **named):
            if self.is_dead:
                raise Crash
            if self.count == self.after and self.happens is not None:
                self.after = None
                self.happens()
            self.count += 1
            send(this, *arguments, **named)

        monkeypatch.setattr(connection.Connection, "send", watched)

    def arm(self, after, happens):
        self.after, self.happens, self.count = after, happens, 0

    def die(self):
        self.is_dead = True
        raise Crash

    def bury(self):
        """Let another process begin: what the first one knew and had open is gone."""
        for each in clients._clients.values():
            each.close()
        clients._clients.clear()
        self.is_dead, self.after = False, None


@pytest.fixture(scope="module")
def broker():
    with exacta.Broker(pulsar=True) as running:
        yield running


@pytest.fixture
def spark(monkeypatch):
    return Spark(monkeypatch)


@pytest.fixture
def make(broker, tmp_path_factory):
    """Make a query with two planned batches, and its work queue."""
    queues = []

    def made(topic=None, base=0):
        query = Query(broker.bootstrap_servers, tmp_path_factory.mktemp("query"), topic)
        plan(query, 0, 1)
        plan(query, 1, 2)
        query.base = base  # its rows are the numbers from here on
        queue = WorkQueue(broker.bootstrap_servers, broker.pulsar_url, new_topic(broker.bootstrap_servers, 1, "queue"))
        queue.fill(base + message for message in MESSAGES)
        queues.append(queue)
        return query, queue

    yield made
    for queue in queues:
        queue.close()


def run(query, queue, batch_id, way):
    """Do what the function of `foreachBatch` does: a row of the batch, and one for each message that is there."""
    with queue.taken() as messages:
        rows = [query.base + batch_id, *(int(each.data()) for each in messages)]
        return write(Frame(rows), batch_id, query.options, acknowledge={NAME: messages}, **way), len(messages)


@WAYS
def test_they_are_acknowledged_with_the_batch_and_not_with_its_replay(spark, make, monkeypatch, way):
    query, queue = make()
    written, count = run(query, queue, 0, way)
    assert (written.rows, written.replayed, count) == (4, False, 3)
    assert queue.counts() == (0, 0)
    queue.fill([200])
    restarted(monkeypatch)
    written, count = run(query, queue, 0, way)
    assert (written.replayed, count) == (True, 1)
    assert queue.counts() == (1, 0), "its row was not written"
    written, count = run(query, queue, 1, way)
    assert (written.rows, count) == (2, 1)
    check_exactly(query.bootstrap, query.topic, [0, 1, *MESSAGES, 200])
    assert queue.counts() == (0, 0)


@WAYS
def test_killed_between_every_two_requests(spark, make, broker, monkeypatch, way):
    sink = new_topic(broker.bootstrap_servers, 2)
    killer, replayed, killed = Killer(monkeypatch), [], True
    share = chosen()
    lives = []
    for requests in itertools.count(share or 0, 1 if share is None else SHARES):
        if not killed:
            break
        lives.append(requests)
        query, queue = make(sink, 1_000 * requests)
        killer.arm(requests, killer.die)
        killed = False
        try:
            run(query, queue, 0, way)
        except Crash:
            killed = True
        killer.bury()
        restarted(monkeypatch)
        # Spark has not noted the batch, and repeats it.
        replayed.append(run(query, queue, 0, way)[0].replayed)
        assert held_back(query.bootstrap, query.topic) == {}
        run(query, queue, 1, way)
        assert queue.counts() == (0, 0)
    # Nothing is decided up to some request, and everything from there on.
    assert replayed == sorted(replayed)
    assert replayed[-1]
    assert share or not replayed[0]
    check_exactly(query.bootstrap, sink, [1_000 * life + row for life in lives for row in (0, 1, *MESSAGES)])


@WAYS
@pytest.mark.parametrize("request_name", ["JoinTransaction", "AcknowledgeMessages", "EndTransactions"])
def test_the_broker_is_killed_before_a_request(spark, make, broker, monkeypatch, way, request_name):
    """The driver goes on by itself: what was acknowledged in the transaction is still acknowledged there."""
    query, queue = make()
    send = connection.Connection.send
    killed: list[object] = []

    def watched(this, request, *arguments, **named):
        if type(request).__name__ == f"{request_name}Request" and not killed:
            killed.append(request)
            broker.restart(clean=False)
        send(this, request, *arguments, **named)

    monkeypatch.setattr(connection.Connection, "send", watched)
    assert run(query, queue, 0, way)[0].rows == 4
    assert killed
    run(query, queue, 1, way)
    assert queue.counts() == (0, 0)
    check_exactly(query.bootstrap, query.topic, [0, 1, *MESSAGES])


@WAYS
def test_an_answer_that_is_lost_is_asked_for_again(spark, make, monkeypatch, way):
    """A message that the transaction has acknowledged already is no conflict then."""
    query, queue = make()
    receive, lost = connection.Connection.receive, []

    def loses(this, *arguments, **named):
        answer = receive(this, *arguments, **named)
        name = type(answer).__name__
        if name.startswith(("JoinTransaction", "AcknowledgeMessages", "EndTransactions")) and name not in lost:
            lost.append(name)
            this.close()
            raise ConnectionLost("the test has lost the answer")
        return answer

    monkeypatch.setattr(connection.Connection, "receive", loses)
    assert run(query, queue, 0, way)[0].rows == 4
    assert lost == ["JoinTransactionResponse", "AcknowledgeMessagesResponse", "EndTransactionsResponse"]
    assert queue.counts() == (0, 0)
    check_exactly(query.bootstrap, query.topic, [0, *MESSAGES])


@WAYS
@pytest.mark.parametrize("commit", [True, False])
def test_someone_else_ends_the_batch_by_its_txn_id(spark, make, broker, monkeypatch, way, commit):
    query, queue = make()
    receive, asked = connection.Connection.receive, []

    def watched(this, *arguments, **named):
        answer = receive(this, *arguments, **named)
        if isinstance(answer, JoinTransactionResponse):
            asked.append(answer.transaction_id)
        if isinstance(answer, AcknowledgeMessagesResponse):
            wire = Wire(broker.pulsar_url)
            ended = wire.end(asked[0], pb.TxnAction.COMMIT if commit else pb.TxnAction.ABORT)
            assert not ended.HasField("error")
            wire.close()
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(connection.Connection, "receive", watched)
        if commit and way is ALONE:
            assert run(query, queue, 0, way)[0].rows == 4
        else:
            sentence = "batch 0 is decided" if commit else "was ended before its batch was decided"
            with pytest.raises(SinkError, match=sentence):
                run(query, queue, 0, way)
    restarted(monkeypatch)
    assert run(query, queue, 0, way)[0].replayed is commit
    assert queue.counts() == (0, 0)
    check_exactly(query.bootstrap, query.topic, [0, *MESSAGES])


@WAYS
def test_messages_that_another_consumer_has_acknowledged(spark, make, way):
    query, queue = make()
    consumer = queue.consumer()
    messages = [consumer.receive(TIMEOUT_MS) for _ in MESSAGES]
    for each in messages:
        consumer.acknowledge(each)
    consumer.close()  # by now the broker has been told
    with pytest.raises(ClusterError, match=f"subscription '{NAME}' .* acknowledged already"):
        write(Frame([0, *MESSAGES]), 0, query.options, acknowledge={NAME: messages}, **way)
    assert held_back(query.bootstrap, query.topic) == {}
    assert queue.counts() == (0, 0)
    queue.fill([200])
    run(query, queue, 0, way)
    check_exactly(query.bootstrap, query.topic, [0, 200])


@WAYS
def test_a_batch_without_rows(spark, make, monkeypatch, way):
    query, queue = make()
    with queue.taken() as messages:
        written = write(Frame([]), 0, query.options, acknowledge={NAME: messages}, **way)
    assert (written.rows, written.replayed) == (0, False)
    assert queue.counts() == (0, 0)
    restarted(monkeypatch)
    queue.fill([200])
    with queue.taken() as messages:
        assert write(Frame([]), 0, query.options, acknowledge={NAME: messages}, **way).replayed
    assert queue.counts() == (1, 0)


def test_several_sinks_subscriptions_and_scopes(spark, make, broker):
    query, queue = make()
    other = WorkQueue(query.bootstrap, queue.url, new_topic(query.bootstrap, 1, "queue"))
    other.fill([0, 1])
    with queue.taken() as messages, other.taken() as others:
        write(Frame([7]), 0, query.options, acknowledge={NAME: [messages[0], *others]}, **ALONE)
        assert (queue.counts(), other.counts()) == ((2, 0), (0, 0))
        options = {**query.options, "sink.name": "b", "transaction.scope": "batch"}
        ids = [each.message_id() for each in messages[1:]]
        write(Frame([8]), 0, options, acknowledge={NAME: ids}, **BY_TASKS)
    write(Frame([9]), 0, {**query.options, "sink.name": "c"}, acknowledge={})
    check_exactly(query.bootstrap, query.topic, [7, 8, 9])
    assert queue.counts() == (0, 0)
    other.close()


@pytest.mark.usefixtures("one_by_one")
def test_too_many_transactions_for_one_step(spark, make):
    """They are not acknowledged before all transactions have ended: those that time out would be run again."""
    query, queue = make()
    with pytest.raises(SinkError, match="too many transactions or partitions for one step"):
        run(query, queue, 0, BY_TASKS)
    assert queue.counts() == (3, 0)
    check_exactly(query.bootstrap, query.topic, [])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"delivery.guarantee": "at-least-once"}, "argument 'acknowledge' needs transactions"),
        ({"replay.deterministic": "true"}, "'replay.deterministic' contradict each other"),
    ],
)
def test_options_that_do_not_go_with_it(spark, options, sentence):
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "checkpointLocation": "/c", **options}
    with pytest.raises(OptionError) as refused:
        write(Frame([]), 0, given, acknowledge={})
    [problem] = refused.value.problems
    assert sentence in problem
    assert parse_foreach_batch(given, acknowledges=True).problems == [problem]
    assert parse_foreach_batch(given).problems == []


def test_another_cluster_says_so_before_anything_is_done(spark, bootstrap, tmp_path, monkeypatch):
    query = Query(bootstrap, tmp_path)
    plan(query, 0, 1)
    if not ON_KAFKA:
        serves = connection.Connection.serves
        monkeypatch.setattr(
            connection.Connection,
            "serves",
            lambda this, request, version=None: (
                not isinstance(request, AcknowledgeMessagesRequest) and serves(this, request, version)
            ),
        )
    frame = Frame([1])
    with pytest.raises(SinkError, match=f"^{bootstrap} is not an Exacta, or is an older one: .*'acknowledge' out$"):
        write(frame, 0, query.options, acknowledge={NAME: []})
    assert frame.computed == []
    with Client(bootstrap) as client:
        assert list_transactions(client, query.query_id, states=()) == []
    report = exacta.spark.check(frame, query.options, acknowledge={})
    assert [each for each in report.problems if "is not an Exacta" in each] == list(report.problems)
    assert exacta.spark.check(frame, query.options).ok


def test_what_is_no_message_is_refused_before_anything_is_done(spark, bootstrap, tmp_path):
    query = Query(bootstrap, tmp_path)
    plan(query, 0, 1)
    frame = Frame([1])
    for wrong in ([1], [pulsar.MessageId.earliest]):
        with pytest.raises((TypeError, SinkError)):
            write(frame, 0, query.options, acknowledge={NAME: cast("Any", wrong)})
    assert frame.computed == []
