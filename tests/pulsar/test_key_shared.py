"""Key_Shared consumers say how they share the keys, frame by frame."""

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, broker_by_hand
from tests.pulsar.consuming import KEY_SHARED, ConsumerClient, produce, producer_of

LOWER, UPPER = (0, 32_767), (32_768, 65_535)
MESSAGES = 8
"""They have no keys, and so each is told apart from the others by its number."""


broker = pytest.fixture(broker_by_hand)


def sticky(*ranges: tuple[int, int]) -> pb.KeySharedMeta:
    hash_ranges = [pb.IntRange(start=first, end=last) for first, last in ranges]
    return pb.KeySharedMeta(key_shared_mode=pb.STICKY, hash_ranges=hash_ranges)


def subscribed(broker: Broker, shared: pb.KeySharedMeta | None) -> ConsumerClient:
    return ConsumerClient(broker, KEY_SHARED, key_shared_meta=shared)


def test_a_consumer_gets_the_hashes_that_it_has_named(broker: Broker) -> None:
    lower, upper = subscribed(broker, sticky(LOWER)), subscribed(broker, sticky(UPPER))
    values = [b"%d" % number for number in range(MESSAGES)]
    produce(producer_of(broker), *values)
    below, above = lower.values(), upper.values()
    assert sorted([*below, *above]) == sorted(values)
    assert below
    assert above


def test_what_nobody_has_named_waits(broker: Broker) -> None:
    lower = subscribed(broker, sticky(LOWER))
    values = [b"%d" % number for number in range(MESSAGES)]
    produce(producer_of(broker), *values)
    below = lower.values()
    assert len(below) < MESSAGES
    upper = subscribed(broker, sticky(UPPER))
    assert sorted([*below, *upper.values()]) == sorted(values)


@pytest.mark.parametrize(
    ("present", "wanted", "error"),
    [
        (sticky(LOWER), sticky((32_000, 33_000)), pb.ConsumerAssignError),
        (sticky(LOWER), sticky(), pb.ConsumerAssignError),
        (sticky(LOWER), sticky((60_000, 59_000)), pb.ConsumerAssignError),
        (sticky(LOWER), None, pb.ConsumerBusy),
        (None, sticky(LOWER), pb.ConsumerBusy),
        (None, pb.KeySharedMeta(key_shared_mode=pb.AUTO_SPLIT, allow_out_of_order_delivery=True), pb.ConsumerBusy),
        (None, pb.KeySharedMeta(key_shared_mode=pb.AUTO_SPLIT), None),
        (sticky(LOWER), sticky(UPPER), None),
    ],
)
def test_who_does_not_fit_to_the_others_is_refused(
    broker: Broker, present: pb.KeySharedMeta | None, wanted: pb.KeySharedMeta | None, error: int | None
) -> None:
    assert isinstance(subscribed(broker, present).opened, pb.CommandSuccess)
    answer = subscribed(broker, wanted).opened
    assert getattr(answer, "error", None) == error
    assert error != pb.ConsumerAssignError or "hashes" in answer.message, "the answer says what does not fit"
