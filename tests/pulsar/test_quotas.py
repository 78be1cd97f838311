"""Producers of both protocols where more is kept for subscriptions than the backlog quota allows."""

from typing import Any

import pulsar
import pytest
from confluent_kafka import KafkaError, Producer

import exacta
from exacta.core.commands import RefuseAppends
from exacta.core.rejections import Rejection
from exacta.ports.journal import Room
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, Client, broker_by_hand, send_frame
from tests.pulsar.wire import client, running
from tests.waiting import wait_until

CODES = {
    Rejection.BACKLOG_HOLDS_PRODUCERS: pb.ServerError.ProducerBlockedQuotaExceededError,
    Rejection.BACKLOG_QUOTA_EXCEEDED: pb.ServerError.ProducerBlockedQuotaExceededException,
}
HOLD, REFUSE, EVICT = "producer_request_hold", "producer_exception", "consumer_backlog_eviction"
PATIENCE_SECONDS = 20


# --- by hand ----------------------------------------------------------------------------------------------------------


def open_producer(named: bool = False) -> pb.CommandProducer:
    name = "p" if named else ""
    return pb.CommandProducer(
        topic="t", producer_id=0, request_id=1, producer_name=name, user_provided_producer_name=named
    )


broker = pytest.fixture(broker_by_hand)


def opened(broker: Broker, *, named: bool = False) -> Client:
    made = broker.connect()
    assert isinstance(made.ask(open_producer(named)), pb.CommandProducerSuccess)
    return made


def refuse(broker: Broker, reason: Rejection | None) -> None:
    broker.engine.submit((RefuseAppends(topic="t", partition=0, reason=reason),), lambda answers: None)


@pytest.mark.parametrize("reason", CODES)
@pytest.mark.parametrize("named", [False, True])
def test_producers_are_closed_and_told_why_when_they_open_again(broker: Broker, reason: Rejection, named: bool) -> None:
    one = opened(broker, named=named)
    refuse(broker, reason)
    one.send_bytes(send_frame(b"a") + send_frame(b"b", sequence=1))
    broker.settle()
    [closed] = one.answers()
    assert (type(closed), closed.producer_id) == (pb.CommandCloseProducer, 0)
    refused = one.ask(open_producer(named))
    assert (type(refused), refused.error) == (pb.CommandError, CODES[reason])
    assert "backlog" in refused.message
    refuse(broker, None)
    assert one.ask(open_producer(named)).last_sequence_id == -1
    one.send_bytes(send_frame(b"a") + send_frame(b"b", sequence=1))
    broker.settle()
    assert [each.message_id.entry_id for each in one.answers()] == [0, 1], "nothing was stored before"


def test_nothing_that_is_sent_later_is_stored_before_what_was_refused(broker: Broker) -> None:
    """A named producer's refused message would be taken for a repeat, and be lost."""
    one = opened(broker, named=True)
    broker.held_syncs = []
    refuse(broker, Rejection.BACKLOG_HOLDS_PRODUCERS)
    one.send_bytes(send_frame(b"a"))
    broker.settle()
    refuse(broker, None)
    one.send_bytes(send_frame(b"b", sequence=1))
    broker.settle()
    broker.release_syncs()
    broker.settle()
    assert [type(each) for each in one.answers()] == [pb.CommandCloseProducer]
    assert one.ask(open_producer(named=True)).last_sequence_id == -1


def set_room(broker: Broker, append_bytes: int | None) -> None:
    broker.storage.room = None if append_bytes is None else Room(append_bytes, is_used_up=False)
    broker.engine._room.look()


def test_producers_wait_while_the_disk_is_full(broker: Broker) -> None:
    one = opened(broker, named=True)
    set_room(broker, 0)
    one.send_bytes(send_frame(b"a") + send_frame(b"b", sequence=1))
    broker.settle()
    assert [type(each) for each in one.answers()] == [pb.CommandCloseProducer]
    refused = one.ask(open_producer(named=True))
    assert refused.error == pb.ServerError.ProducerBlockedQuotaExceededError, "its client keeps trying"
    assert "disk is full" in refused.message
    set_room(broker, None)
    assert one.ask(open_producer(named=True)).last_sequence_id == -1
    one.send_bytes(send_frame(b"a") + send_frame(b"b", sequence=1))
    broker.settle()
    assert [each.message_id.entry_id for each in one.answers()] == [0, 1]


@pytest.mark.parametrize("grows", [False, True])
def test_no_smaller_message_overtakes_one_for_which_there_is_no_room(broker: Broker, grows: bool) -> None:
    """The one that is refused would be taken for a repeat when it comes again, and be lost."""
    one = opened(broker, named=True)
    broker.held_syncs = []
    set_room(broker, 1_000)
    one.send_bytes(send_frame(b"a" * 2_000))
    if grows:
        broker.settle()
        set_room(broker, None)
    one.send_bytes(send_frame(b"b", sequence=1))
    broker.settle()
    broker.release_syncs()
    broker.settle()
    assert [type(each) for each in one.answers()] == [pb.CommandCloseProducer]
    set_room(broker, None)
    assert one.ask(open_producer(named=True)).last_sequence_id == -1


def test_the_receipts_of_what_was_sent_before_leave_before_the_producer_is_closed(broker: Broker) -> None:
    """Its client would send again what it has no receipt for, and without a name that would be stored twice."""
    one = opened(broker)
    set_room(broker, 1_000)
    one.send_bytes(send_frame(b"a") + send_frame(b"b" * 2_000, sequence=1) + send_frame(b"c", sequence=2))
    broker.settle()
    assert [type(each) for each in one.answers()] == [pb.CommandSendReceipt, pb.CommandCloseProducer]
    set_room(broker, None)


def test_the_other_producers_of_the_partition_are_closed_by_what_they_send_next_and_go_on(broker: Broker) -> None:
    one, other = opened(broker, named=True), opened(broker)
    set_room(broker, 1_000)
    one.send_bytes(send_frame(b"a" * 2_000))
    broker.settle()
    assert [type(each) for each in one.answers()] == [pb.CommandCloseProducer]
    set_room(broker, None)
    for expected in (pb.CommandCloseProducer, pb.CommandSendReceipt):
        other.send_bytes(send_frame(b"b"))
        broker.settle()
        assert [type(each) for each in other.answers()] == [expected]
        other.ask(open_producer())


def test_one_that_waited_for_the_partition_begins_after_the_closings_of_the_others(broker: Broker) -> None:
    holder, waiting = broker.connect(), broker.connect()
    for each, mode in ((holder, pb.ProducerAccessMode.Exclusive), (waiting, pb.ProducerAccessMode.WaitForExclusive)):
        command = open_producer()
        command.producer_access_mode = mode
        each.ask(command)
    set_room(broker, 1_000)
    holder.send_bytes(send_frame(b"a" * 2_000))
    broker.settle()
    assert [each.producer_ready for each in waiting.answers()] == [True]
    set_room(broker, None)
    waiting.send_bytes(send_frame(b"b"))
    broker.settle()
    assert [type(each) for each in waiting.answers()] == [pb.CommandSendReceipt]


@pytest.mark.parametrize("action", [pb.TxnAction.COMMIT, pb.TxnAction.ABORT])
def test_a_transaction_ends_although_nothing_is_appended(broker: Broker, action: "pb.TxnAction") -> None:
    one = opened(broker)
    begun = one.ask(pb.CommandNewTxn(request_id=2, txn_ttl_millis=60_000, tc_id=0))
    least = begun.txnid_least_bits
    one.send_bytes(send_frame(b"a", transaction=least))
    broker.settle()
    assert [type(each) for each in one.answers()] == [pb.CommandSendReceipt]
    refuse(broker, Rejection.BACKLOG_QUOTA_EXCEEDED)
    one.send_bytes(send_frame(b"b", sequence=1, transaction=least))
    broker.settle()
    assert [type(each) for each in one.answers()] == [pb.CommandCloseProducer]
    ended = one.ask(pb.CommandEndTxn(request_id=3, txnid_least_bits=least, txnid_most_bits=0, txn_action=action))
    assert (type(ended), ended.HasField("error")) == (pb.CommandEndTxnResponse, False)


# --- real clients -----------------------------------------------------------------------------------------------------


def quota(policy: str) -> Any:
    """Run a broker whose subscriptions may keep one message of 1 KiB, and not two."""
    return running(
        log_retention_ms=0,
        pulsar_backlog_quota_bytes=1_500,
        pulsar_backlog_quota_policy=policy,
        pulsar_backlog_check_interval_ms=20,
    )


MESSAGE = b"x" * 1_024


def refuses(broker: exacta.Broker) -> bool:
    """Return whether a producer is refused; the topic has one message more if it is not."""
    with client(broker.pulsar_url) as other:
        try:
            other.create_producer("orders").close()
        except (pulsar.ProducerBlockedQuotaExceededError, pulsar.ProducerBlockedQuotaExceededException):
            return True
        return False


def test_a_producer_waits_until_its_consumer_has_caught_up() -> None:
    with quota(HOLD) as broker, client(broker.pulsar_url) as opened:
        consumer = opened.subscribe("orders", "s")
        producer = opened.create_producer("orders", batching_enabled=False)
        for _ in range(2):
            producer.send(MESSAGE)
        wait_until(lambda: refuses(broker), PATIENCE_SECONDS)
        results: list[pulsar.Result] = []
        producer.send_async(b"later", lambda result, message_id: results.append(result))
        for _ in range(2):
            consumer.acknowledge(consumer.receive(PATIENCE_SECONDS * 1000))
        last = consumer.receive(PATIENCE_SECONDS * 1000)
        assert last.data() == b"later"
        wait_until(lambda: results == [pulsar.Result.Ok], PATIENCE_SECONDS)


def test_a_producer_is_told_and_so_is_kafkas() -> None:
    with quota(REFUSE) as broker, client(broker.pulsar_url) as opened:
        consumer = opened.subscribe("orders", "s")
        producer = opened.create_producer("orders", batching_enabled=False)
        for _ in range(2):
            producer.send(MESSAGE)
        wait_until(lambda: refuses(broker), PATIENCE_SECONDS)
        with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
            producer.send(b"refused")
        codes: list[int | None] = []
        kafka = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})

        def send() -> int | None:
            kafka.produce("orders", b"k", on_delivery=lambda error, _: codes.append(error and error.code()))
            assert not kafka.flush(PATIENCE_SECONDS)
            return codes[-1]

        assert send() == KafkaError.POLICY_VIOLATION
        for _ in range(2):
            consumer.acknowledge(consumer.receive(PATIENCE_SECONDS * 1000))
        wait_until(lambda: send() is None, PATIENCE_SECONDS)
        producer.send(b"taken")


def test_the_oldest_messages_go_and_producers_notice_nothing() -> None:
    with quota(EVICT) as broker, client(broker.pulsar_url) as opened:
        opened.subscribe("orders", "s").close()
        producer = opened.create_producer("orders", batching_enabled=False)
        for number in range(3):
            producer.send(b"%d" % number + MESSAGE)

        def oldest() -> bytes:
            consumer = opened.subscribe("orders", "s")
            found = consumer.receive(PATIENCE_SECONDS * 1000).data()[:1]
            consumer.close()
            return found

        wait_until(lambda: oldest() == b"1", PATIENCE_SECONDS)
        assert oldest() == b"1", "a quota's worth is kept"
