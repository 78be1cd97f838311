"""The smallest tests of what Pulsar's own clients have found (`tests/pulsar_clients`)."""

from collections.abc import Iterator

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker
from tests.pulsar.consuming import EXCLUSIVE, KEY_SHARED, ConsumerClient, produce, producer_of


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.end()


def test_a_position_behind_the_last_message_is_told_as_the_last_message(broker: Broker) -> None:
    consumer = ConsumerClient(broker, EXCLUSIVE)
    transaction = consumer.begin()
    produce(producer_of(broker), b"a", transaction=transaction)
    consumer.end(transaction)
    latest = ConsumerClient(
        broker, EXCLUSIVE, subscription="reader", durable=False, initial_position=pb.CommandSubscribe.Latest
    )
    answer = latest.last_message()
    assert (answer.last_message_id.entry_id, answer.consumer_mark_delete_position.entry_id) == (0, 0), "no marker"


def sticky(*ranges: tuple[int, int]) -> pb.KeySharedMeta:
    meta = pb.KeySharedMeta(key_shared_mode=pb.STICKY)
    for first, last in ranges:
        meta.hash_ranges.add(start=first, end=last)
    return meta


def test_consumers_of_hash_ranges_get_these_and_share_none(broker: Broker) -> None:
    low = ConsumerClient(broker, KEY_SHARED, key_shared_meta=sticky((0, 32767)))
    high = ConsumerClient(broker, KEY_SHARED, key_shared_meta=sticky((32768, 65535)))
    for meta in (sticky((100, 200)), sticky(), pb.KeySharedMeta(key_shared_mode=pb.AUTO_SPLIT)):
        refused = ConsumerClient(broker, KEY_SHARED, key_shared_meta=meta)
        assert refused.opened.error in (pb.ServerError.ConsumerAssignError, pb.ServerError.ConsumerBusy)
    produce(producer_of(broker), b"a", b"b")
    found = [low.values(), high.values()]
    assert sorted(map(len, found)) == [0, 2], "messages without a key have one hash"
