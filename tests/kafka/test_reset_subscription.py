"""ResetSubscription: where a subscription goes on, and what stands in the way."""

from collections.abc import Iterator
from typing import Any

import pytest

from exacta.core.commands.subscriptions import EARLIEST, LATEST
from exacta.core.replies import DONE
from exacta.protocol.kafka.compression import LZ4
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k21_delete_records
from exacta.protocol.kafka.messages.k17788_reset_subscription import (
    PartitionReset,
    ResetSubscriptionRequest,
    TopicReset,
)
from tests.kafka.subscribing import Subscriber
from tests.kafka.test_ask_lag import produce
from tests.kafka.test_ask_subscriptions import the_one
from tests.kafka.test_handles import Handle
from tests.kafka.test_listing_offsets import compressed
from tests.kafka.test_topic_ids import create
from tests.kafka.wire import Front, Wire, batch, front


@pytest.fixture
def broker() -> Iterator[Front]:
    """A broker with three batches of two messages, which are of the times 1000, 2000 and 3000."""
    with front() as running:
        wire = running.connect()
        create(wire)
        for time_ms in (1_000, 2_000, 3_000):
            produce(wire, batch(b"a", b"b", timestamp_ms=time_ms))
        yield running


@pytest.fixture
def wire(broker: Front) -> Wire:
    return broker.connect()


def reset(wire: Wire, name: str = "s", *, topic: str = "t", partition: int = 0, dry: bool = False, **to: Any) -> Any:
    wanted = TopicReset(name=topic, partitions=[PartitionReset(partition_index=partition, **to)])
    request = ResetSubscriptionRequest(subscription=name, topics=[wanted], validate_only=dry)
    [found] = wire.ask(request, 0).topics
    assert found.name == topic
    [result] = found.partitions
    assert result.partition_index == partition
    return result


@pytest.mark.parametrize(
    ("to", "position"),
    [
        ({"offset": EARLIEST}, 0),
        ({"offset": LATEST}, 6),
        ({"offset": 3}, 3),
        ({"timestamp_ms": 0}, 0),
        ({"timestamp_ms": 1_001}, 2),
        ({"timestamp_ms": 3_000}, 4),
        ({"timestamp_ms": 3_001}, 6),
    ],
)
def test_it_goes_on_where_it_is_told(broker: Front, wire: Wire, to: dict[str, Any], position: int) -> None:
    assert Subscriber(broker).acknowledge((0, 0)) == DONE
    planned = reset(wire, dry=True, **to)
    assert (planned.error_code, planned.old_position, planned.position) == (ErrorCode.NONE, 1, position)
    assert the_one(wire).position == 1, "that was a plan"
    done = reset(wire, **to)
    assert (done.error_code, done.old_position, done.position) == (ErrorCode.NONE, 1, position)
    assert (the_one(wire).position, the_one(wire).left) == (position, 6 - position)


def test_a_time_leads_to_its_record_also_in_a_compressed_batch(broker: Front, wire: Wire) -> None:
    Subscriber(broker)
    produce(wire, compressed(LZ4, 4_000, 4_500, 5_000))
    assert [reset(wire, timestamp_ms=time_ms).position for time_ms in (4_001, 5_000, 5_001)] == [7, 8, 9]


def test_what_cannot_be_read_moves_nothing_and_the_others_are_moved(broker: Front, wire: Wire) -> None:
    Subscriber(broker)
    broker.storage.read_fault = "the disk is gone"
    resets = [PartitionReset(partition_index=0, timestamp_ms=1_000), PartitionReset(partition_index=0, offset=3)]
    for dry in (True, False):
        topics = [TopicReset(name="t", partitions=resets)]
        request = ResetSubscriptionRequest(subscription="s", topics=topics, validate_only=dry)
        [topic] = wire.ask(request, 0).topics
        found = [(each.error_code, each.position) for each in topic.partitions]
        assert found == [(ErrorCode.KAFKA_STORAGE_ERROR, -1), (ErrorCode.NONE, 3)]
    assert the_one(wire).position == 3


def test_a_place_before_the_first_message_is_the_first_message(broker: Front, wire: Wire) -> None:
    partition = k21_delete_records.DeleteRecordsPartition(partition_index=0, offset=2)
    topic = k21_delete_records.DeleteRecordsTopic(name="t", partitions=[partition])
    wire.ask(k21_delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=1_000), 2)
    Subscriber(broker)
    assert reset(wire, offset=0).position == the_one(wire).position == 2


@pytest.mark.parametrize("dry", [True, False])
@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"name": "other"}, ErrorCode.RESOURCE_NOT_FOUND),
        ({"topic": "other"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic": "other", "timestamp_ms": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"offset": 7}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"offset": -3}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_what_is_not_there_is_said(
    broker: Front, wire: Wire, asked: dict[str, Any], code: ErrorCode, dry: bool
) -> None:
    Subscriber(broker)
    refused = reset(wire, dry=dry, **asked)
    assert (refused.error_code, refused.old_position, refused.position) == (code, -1, -1)
    assert the_one(wire).position == 0


def test_its_consumers_are_disconnected_and_what_is_pending_stays(broker: Front, wire: Wire) -> None:
    subscriber, handle = Subscriber(broker), Handle(broker)
    subscriber.connect(1)
    subscriber.connect(2)
    assert subscriber.acknowledge((4, 5), transaction=handle.transaction_id) == DONE
    assert reset(wire, offset=3, dry=True).closed_consumers == 2
    assert reset(wire, offset=3).closed_consumers == 2
    found = the_one(wire)
    assert (found.consumer_count, found.left, found.pending) == (0, 1, 2)


def test_partitions_are_moved_each_for_itself(broker: Front, wire: Wire) -> None:
    create(wire, "u", 3)
    for index in (0, 2):
        Subscriber(broker, topic="u", partition=index)
    partitions = [PartitionReset(partition_index=index, offset=LATEST) for index in range(3)]
    request = ResetSubscriptionRequest(subscription="s", topics=[TopicReset(name="u", partitions=partitions)])
    [topic] = wire.ask(request, 0).topics
    none, missing = ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
        (0, none),
        (1, missing),
        (2, none),
    ]
