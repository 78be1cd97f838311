"""Idempotence: order, repeats, gaps, wrap, epochs."""

from exacta.core.commands import AppendBatch
from exacta.core.ids import Offset, ProducerEpoch, ProducerId
from exacta.core.rejections import Rejection
from exacta.core.replies import Appended
from exacta.core.writers import IdempotentWriter
from tests.core.world import Producer, World


def at(offset: int, *, repeated: bool = False) -> Appended:
    return Appended(base_offset=Offset(offset), repeated=repeated, max_timestamp_ms=1_000_000 if repeated else -1)


def test_batches_follow_each_other_and_sequences_wrap(world: World) -> None:
    producer = world.producer(None)
    assert [producer.append(count=3) for _ in range(4)] == [at(0), at(3), at(6), at(9)]
    assert producer.sequences["t", 0] == 4, "12 records, modulo 8"
    world.check()


def test_a_repeat_gets_its_original_offset_while_it_is_retained(world: World) -> None:
    producer = world.producer(None)
    for _ in range(3):
        producer.append(count=2)
    assert producer.append(count=2, sequence=2) == at(2, repeated=True)
    assert producer.append(count=2, sequence=4) == at(4, repeated=True)
    assert producer.append(count=2, sequence=0) is Rejection.OUT_OF_ORDER_SEQUENCE, "only two batches are retained"
    world.check()


def test_a_repeat_across_the_wrap(world: World) -> None:
    producer = world.producer(None)
    producer.append(count=6)
    assert producer.append(count=4) == at(6), "sequences 6, 7, 0, 1"
    assert producer.append(count=4, sequence=6) == at(6, repeated=True)
    assert producer.append() == at(10)
    world.check()


def test_gaps_and_overlaps_are_refused(world: World) -> None:
    producer = world.producer(None)
    producer.append(count=2)
    assert producer.append(sequence=3) is Rejection.OUT_OF_ORDER_SEQUENCE
    assert producer.append(count=3, sequence=0) is Rejection.OUT_OF_ORDER_SEQUENCE, (
        "same start, other length: no repeat"
    )
    assert producer.append() == at(2)
    world.check()


def test_a_new_epoch_begins_at_zero(world: World) -> None:
    old = world.producer("x")
    old.add()
    old.append(count=2)
    new = world.producer("x")
    new.add()
    assert new.append(sequence=2) is Rejection.OUT_OF_ORDER_SEQUENCE
    assert isinstance(new.append(), Appended)
    assert old.append() is Rejection.INVALID_PRODUCER_EPOCH
    world.check()


def test_without_state_any_sequence_may_begin(world: World) -> None:
    producer = world.producer(None)
    assert producer.append(sequence=5) == at(0)
    assert producer.append(sequence=6) == at(1)
    world.check()


def test_a_repeat_after_the_end_of_its_transaction_is_still_a_repeat(world: World) -> None:
    producer = world.producer("x")
    producer.add()
    producer.append()
    producer.end(commit=True)
    assert producer.append(sequence=0) == at(0, repeated=True)
    world.check()


def test_a_producer_id_that_was_never_given_out_is_refused(world: World) -> None:
    producer = world.producer(None)
    producer.producer_id = ProducerId(99)
    assert producer.append() is Rejection.UNKNOWN_PRODUCER_ID


def test_an_epoch_that_was_never_given_out_is_refused(world: World) -> None:
    producer = world.producer("x")
    producer.add()
    producer.epoch = ProducerEpoch(2)
    assert producer.append() is Rejection.INVALID_PRODUCER_EPOCH


def test_a_plain_batch_into_the_own_open_transaction_is_refused(world: World) -> None:
    producer = world.producer("x")
    producer.add()
    producer.append()
    plain = AppendBatch(
        topic="t",
        partition=0,
        record_count=1,
        size=62,
        max_timestamp_ms=0,
        writer=IdempotentWriter(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=1,
        ),
    )
    assert world.send(plain) is Rejection.INVALID_TRANSACTION_STATE


def test_a_transactional_batch_needs_the_transactional_id_of_its_producer(world: World) -> None:
    """The broker must not go by the producer id alone: the partition's leader asks for the id's own transaction."""
    mine, other = world.producer("x"), world.producer("y")
    for producer in (mine, other):
        producer.add()
    other.transactional_id = "x"
    assert other.append() is Rejection.INVALID_PRODUCER_ID_MAPPING
    other.transactional_id = "nobody's"
    assert other.append() is Rejection.INVALID_PRODUCER_ID_MAPPING
    assert mine.append() == at(0)
    world.check()


def test_without_a_producer_id_everything_is_appended(world: World) -> None:
    plain = AppendBatch(topic="t", partition=0, record_count=2, size=63, max_timestamp_ms=0)
    assert [world.send(plain), world.send(plain)] == [at(0), at(2)]
    assert world.send(AppendBatch(topic="u", partition=0, record_count=1, size=62, max_timestamp_ms=0)) is (
        Rejection.UNKNOWN_TOPIC_OR_PARTITION
    )
    world.check()


def test_a_batch_of_a_transaction_is_no_repeat_of_one_outside(world: World) -> None:
    """Or it would be acknowledged, and not be part of the transaction that then commits."""
    producer = world.producer("x")
    outside = Producer(world, None, producer.producer_id, producer.epoch)
    assert outside.append() == at(0)
    assert producer.append() is Rejection.TRANSACTION_NOT_BEGUN
    producer.add()
    assert producer.append() is Rejection.OUT_OF_ORDER_SEQUENCE
    assert outside.append(sequence=0) == at(0, repeated=True)
