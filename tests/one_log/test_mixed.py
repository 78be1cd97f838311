"""A partition of all kinds of batches: what readers of each protocol get of it, and how each counts and seeks there."""

import time
from collections.abc import Iterable
from typing import Any

import pulsar
import pytest
from confluent_kafka import OFFSET_STORED, Consumer, TopicPartition

import exacta
from exacta.client.lag import describe_lag
from exacta.client.routing import Client
from exacta.client.subscriptions import describe_subscriptions
from tests.one_log.clients import SECONDS, Sent, headers_of, kafka_records, kafka_sends, pulsar_sends
from tests.one_log.mixed import MixedTopic, Shown
from tests.pulsar.joint import ABORT, Side, kafka_producer, write
from tests.pulsar.wire import client
from tests.shares import share_of


def for_pulsar(mixed: MixedTopic) -> list[Shown]:
    """Return what Pulsar's own client gets: it has no key, and no other chunk."""
    return [each for each in mixed.shown if not each.reason]


def after(mixed: MixedTopic, offset: int) -> list[Shown]:
    """Return what is shown from an offset on."""
    return [each for each in mixed.shown if each.offset >= offset]


def offset_of(message: Any) -> int:
    message_id = message.message_id()
    return int(message_id.entry_id() + max(message_id.batch_index(), 0))


def before_the_end(mixed: MixedTopic, reader: Any) -> list[Any]:
    """Return the messages from where a reader is to the end of what was written in the beginning."""
    found: list[Any] = []
    while True:
        message = reader.read_next(SECONDS * 1000)
        if offset_of(message) >= mixed.end:
            return found
        found.append(message)
        if not reader.has_message_available():
            return found


# --- reading ----------------------------------------------------------------------------------------------------------


def test_kafkas_readers_get_every_record_at_its_offset(mixed: MixedTopic) -> None:
    found = kafka_records(mixed.broker.bootstrap_servers, "t")[: len(mixed.shown)]  # other tests write behind these
    assert [(each.offset(), each.key(), each.value(), each.timestamp()[1]) for each in found] == [
        each[:4] for each in mixed.shown
    ]
    told = [(headers_of(each).get("pulsar-opaque") or b"").decode() for each in found]
    assert told == [each.reason for each in mixed.shown]


def test_pulsars_readers_get_every_message_at_its_offset(mixed: MixedTopic) -> None:
    with client(mixed.broker.pulsar_url) as opened:
        found = before_the_end(mixed, opened.create_reader("t", pulsar.MessageId.earliest))
    assert [
        (offset_of(each), each.partition_key().encode(), each.data(), each.publish_timestamp()) for each in found
    ] == [(*each[:3], each.publish_ms) for each in for_pulsar(mixed)]


# --- seeking by time --------------------------------------------------------------------------------------------------


def around(times: Iterable[int]) -> list[int]:
    """Return these times, and those before and behind each of them."""
    return sorted({moment for each in times for moment in (each - 1, each, each + 1)})


def test_kafkas_clients_find_the_first_record_of_a_time(mixed: MixedTopic) -> None:
    """It is the first that is not older, also in a compressed batch."""
    consumer = Consumer({"bootstrap.servers": mixed.broker.bootstrap_servers, "group.id": "t"})
    try:
        for moment in share_of(around(each.time_ms for each in mixed.shown)):
            wanted = next((each for each in mixed.shown if each.time_ms >= moment), None)
            [found] = consumer.offsets_for_times([TopicPartition("t", 0, moment)], SECONDS)
            if wanted is None:
                assert found.offset == -1 or found.offset >= mixed.end
            else:
                assert after(mixed, found.offset)[0] == wanted, moment - mixed.shown[0].time_ms
    finally:
        consumer.close()


def test_pulsars_clients_find_the_first_message_of_a_time(mixed: MixedTopic) -> None:
    """It is the first that is not older, by a record's own time, which may be before the publish time of its entry."""
    with client(mixed.broker.pulsar_url) as opened:
        reader = opened.create_reader("t", pulsar.MessageId.earliest)
        for moment in share_of(around(each.time_ms for each in mixed.shown)):
            wanted = next((each.offset for each in for_pulsar(mixed) if each.time_ms >= moment), None)
            if wanted is not None:
                reader.seek(moment)
                assert offset_of(reader.read_next(SECONDS * 1000)) == wanted, moment - mixed.shown[0].time_ms


# --- positions, and how much is left ----------------------------------------------------------------------------------


def test_a_group_goes_on_at_any_offset_and_its_lag_is_in_records(mixed: MixedTopic) -> None:
    settings = {"bootstrap.servers": mixed.broker.bootstrap_servers, "group.id": "lag", "enable.auto.commit": False}
    consumer = Consumer(settings)
    try:
        with Client(mixed.broker.bootstrap_servers) as operator:

            def unread(offset: int) -> int:
                consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
                [found] = describe_lag(operator, "lag").partitions
                assert (found.committed_offset, found.held_back) == (offset, 0)
                return found.unread

            behind = unread(mixed.end)
            for offset in share_of(range(mixed.end)):
                left = after(mixed, offset)
                # A batch that the offset divides is counted by its offsets; compaction leaves one gap in a batch.
                assert 0 <= unread(offset) - behind - len(left) <= mixed.is_compacted, offset
                if offset % 5 == 3:
                    consumer.assign([TopicPartition("t", 0, OFFSET_STORED)])
                    assert (left and consumer.poll(SECONDS).offset()) == left[0].offset
                    consumer.unassign()
    finally:
        consumer.close()


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_a_subscription_goes_on_at_any_message_and_its_backlog_is_in_messages(mixed: MixedTopic, kind: str) -> None:
    subscription = {
        "topic": "t",
        "subscription_name": kind,
        "consumer_type": getattr(pulsar.ConsumerType, kind),
        "initial_position": pulsar.InitialPosition.Earliest,
        "batch_index_ack_enabled": True,
    }
    messages = for_pulsar(mixed)
    with client(mixed.broker.pulsar_url) as opened, Client(mixed.broker.bootstrap_servers) as operator:

        def left() -> int:
            [found] = describe_subscriptions(operator, ["t"], [kind])
            assert (found.held_back, found.pending) == (0, 0)
            return found.left

        opened.subscribe(**subscription).close()
        at, everything = 0, left()
        assert everything >= len(mixed.shown)
        for step in (1, 2, 3, 5, 8, 13, 21):
            consumer = opened.subscribe(**subscription)
            found = [consumer.receive(SECONDS * 1000) for _ in range(step)]
            assert [offset_of(each) for each in found] == [each.offset for each in messages[at : at + step]]
            for each in found:
                consumer.acknowledge(each)
            consumer.close()
            at += step
            assert everything - left() == at


@pytest.mark.parametrize("by", ["Kafka", "Pulsar"])
def test_a_transaction_of_either_holds_back_the_readers_of_both(broker: exacta.Broker, by: str) -> None:
    pulsar_sends(broker, "t", [{"content": b"before"}])
    side, producer = Side(broker.pulsar_url), kafka_producer(broker.bootstrap_servers)
    side.open_producer("t")
    if by == "Kafka":
        producer.begin_transaction()
        write(producer, "t", b"inside")
        name = "x"
    else:
        transaction = side.begin().txnid_least_bits
        side.produce(b"inside", transaction=transaction)
        name = f"TxnID(0,{transaction})"
    kafka_sends(broker, "t", [Sent(value, timestamp_ms=int(time.time() * 1000)) for value in (b"behind", b"it")])
    side.subscribe("t")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
    with Client(broker.bootstrap_servers) as operator:

        def seen() -> list[tuple[int, int, list[str]]]:
            """Return what is to be read, what is held back and by whom, of the group and of the subscription."""
            [lag] = describe_lag(operator, "g").partitions
            [found] = describe_subscriptions(operator, ["t"], ["s"], details=True)
            assert found.details is not None
            return [
                (lag.unread, lag.held_back, [each.transactional_id for each in lag.held_by]),
                (found.left, found.held_back, [each.transactional_id for each in found.details.held_by]),
            ]

        assert seen() == [(1, 3, [name])] * 2
        producer.commit_transaction(SECONDS) if by == "Kafka" else side.end(transaction, ABORT)
        assert seen() == [(4 if by == "Kafka" else 3, 0, [])] * 2
    consumer.close()
    side.close()
