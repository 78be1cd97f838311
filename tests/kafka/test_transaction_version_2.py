"""Version 2 of the transaction protocol (KIP-890) over the wire: which versions of which requests speak it."""

from typing import Any

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k24_add_partitions_to_txn as add
from exacta.protocol.kafka.messages import k26_end_txn, k28_txn_offset_commit
from exacta.protocol.kafka.messages import k61_describe_producers as describe
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.records import iter_batches
from tests.kafka.recording import produce
from tests.kafka.test_records import fetch
from tests.kafka.test_topic_ids import create
from tests.kafka.test_transactions_and_groups import Producer, fetched
from tests.kafka.wire import Wire, batch, front, values_in


@pytest.fixture(autouse=True)
def topic(wire: Wire) -> None:
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)


class Client(Producer):
    """A client that speaks version 2 in the lowest versions that do, and adopts the pair of each answer."""

    sequence = 0

    def write(self, value: bytes, version: int = 12, epoch: int | None = None) -> Any:
        records = batch(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        answer = produce(self.wire, records, version, transactional_id=self.transactional_id)
        if not answer.error_code:
            self.sequence += 1
        return answer

    def finish(self, version: int = 5, *, commit: bool, epoch: int | None = None) -> Any:
        request = k26_end_txn.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=commit,
        )
        answer = self.wire.ask(request, version)
        if not answer.error_code and version >= 5:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return answer

    def verify(self, version: int, *partitions: int, verify_only: bool = True) -> list[int]:
        entry = add.AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            verify_only=verify_only,
            topics=[add.AddPartitionsToTxnTopic(name="t", partitions=list(partitions))],
        )
        response = self.wire.ask(add.AddPartitionsToTxnRequest(transactions=[entry]), version)
        [result] = response.results_by_transaction
        assert result.transactional_id == self.transactional_id
        return [each.partition_error_code for each in result.topic_results[0].results_by_partition]


def test_transactions_without_registering_anything(wire: Wire) -> None:
    client = Client(wire)
    pairs = [(client.producer_id, client.epoch)]
    for number, commit in enumerate([True, False, True]):
        assert client.write(b"%d" % number).error_code == 0
        assert client.commit_offset(number, version=5) == 0
        assert client.finish(commit=commit).error_code == 0
        pairs.append((client.producer_id, client.epoch))
    assert [epoch for _, epoch in pairs] == [0, 1, 2, 3]
    answer = fetch(wire, committed=True)
    assert [entry.first_offset for entry in answer.aborted_transactions] == [2]
    assert values_in(answer.records) == [b"0", b"1", b"2"], "the reader leaves the aborted one out"
    assert fetched(wire).committed_offset == 2


def test_a_marker_is_above_every_write_of_its_transaction(wire: Wire) -> None:
    client = Client(wire)
    client.write(b"v")
    client.finish(commit=True)
    client.add_partitions(t=[0])
    client.write(b"w", version=11)
    client.finish(4, commit=True)
    epochs = [(header.control, header.producer_epoch) for header, _ in iter_batches(bytes(fetch(wire).records))]
    assert epochs == [(False, 0), (True, 1), (False, 1), (True, 1)]


def test_older_versions_must_register_first(wire: Wire) -> None:
    client = Client(wire)
    assert client.write(b"v", version=11).error_code == ErrorCode.TRANSACTION_ABORTABLE
    assert client.commit_offset(1, version=4) == ErrorCode.TRANSACTION_ABORTABLE
    assert client.write(b"v", version=12).error_code == 0
    assert client.write(b"w", version=11).error_code == 0, "registered by now"


def test_requests_of_the_transaction_before_are_told_so(wire: Wire) -> None:
    client = Client(wire)
    client.write(b"v")
    client.finish(commit=True)
    client.write(b"w")
    assert client.finish(commit=True, epoch=0).error_code == ErrorCode.PRODUCER_FENCED
    assert client.write(b"late", epoch=0).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert client.finish(commit=True).error_code == 0


def test_a_repeated_end_brings_the_same_pair(wire: Wire) -> None:
    client = Client(wire)
    client.write(b"v")
    first = client.finish(commit=True)
    again = client.finish(commit=True, epoch=0)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (0, first.producer_id, first.producer_epoch)
    assert client.finish(commit=False, epoch=0).error_code == ErrorCode.INVALID_TXN_STATE


def test_ends_of_nothing(wire: Wire) -> None:
    client = Client(wire)
    refused = client.finish(commit=True)
    assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (ErrorCode.INVALID_TXN_STATE, -1, -1)
    assert (client.finish(commit=False).error_code, client.epoch) == (0, 1)
    assert (client.finish(commit=False).error_code, client.epoch) == (0, 2)


def test_a_client_without_transactions_registers_nothing(wire: Wire) -> None:
    assert produce(wire, batch(b"v"), 12).error_code == 0
    plain = batch(b"w", producer_id=Producer(wire).producer_id, producer_epoch=0, base_sequence=0)
    assert produce(wire, plain, 12).error_code == 0
    bound = wire.ask(InitProducerIdRequest(), 4)
    late = batch(b"x", producer_id=bound.producer_id, producer_epoch=0, base_sequence=7)
    assert produce(wire, late, 12).error_code == 0, "its state may have expired, as in every version"
    assert len(values_in(fetch(wire, committed=True).records)) == 3


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_register_and_verify_several_transactions_at_once(wire: Wire, version: int) -> None:
    client = Client(wire)
    assert client.verify(version, 0) == [ErrorCode.TRANSACTION_ABORTABLE]
    assert client.verify(version, 0, verify_only=False) == [0]
    for verify_only in (True, False):
        assert client.verify(version, 0, 7, verify_only=verify_only) == [
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
    client.epoch += 1
    assert client.verify(version, 0) == [ErrorCode.PRODUCER_FENCED]
    assert wire.ask(add.AddPartitionsToTxnRequest(transactions=[]), version).results_by_transaction == []


def test_producers_of_a_partition_are_described(wire: Wire) -> None:
    """KIP-664: what holds readers back is told with its first offset, until it ends."""
    plain = wire.ask(InitProducerIdRequest(), 4).producer_id
    produce(wire, batch(b"a", b"b", producer_id=plain, producer_epoch=0, base_sequence=0, timestamp_ms=5_000))
    client = Client(wire)
    client.write(b"v")
    client.write(b"w")
    topics = [describe.TopicRequest(name="t", partition_indexes=[0, 7]), describe.TopicRequest(name="nowhere")]

    def described() -> list[Any]:
        found, nowhere = wire.ask(describe.DescribeProducersRequest(topics=topics), 0).topics
        assert nowhere.partitions == []
        known, unknown = found.partitions
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return known.active_producers

    ours = describe.ProducerState(
        producer_id=client.producer_id,
        producer_epoch=client.epoch,
        last_sequence=1,
        last_timestamp=1_000,
        coordinator_epoch=0,
        current_txn_start_offset=2,
    )
    theirs = describe.ProducerState(
        producer_id=plain, producer_epoch=0, last_sequence=1, last_timestamp=5_000, coordinator_epoch=-1
    )
    assert described() == [theirs, ours]
    client.finish(commit=True)
    assert [each.current_txn_start_offset for each in described()] == [-1, -1]


def test_a_producer_whose_batches_are_staged_holds_nobody_back() -> None:
    """So find-hanging, which looks for first offsets, does not look at it."""
    with front(transaction_buffer="sidecar") as broker:
        wire = broker.connect()
        create(wire)
        client = Client(wire)
        client.write(b"v")
        request = describe.DescribeProducersRequest(topics=[describe.TopicRequest(name="t", partition_indexes=[0])])
        for _ in range(2):  # while it is open, and afterwards
            [found] = wire.ask(request, 0).topics[0].partitions[0].active_producers
            assert (found.producer_id, found.producer_epoch) == (client.producer_id, 0)
            assert (found.current_txn_start_offset, found.last_sequence) == (-1, 0)
            if client.epoch == 0:
                client.finish(commit=True)
        assert client.epoch == 1


def test_offsets_are_pending_until_the_transaction_ends(wire: Wire) -> None:
    client = Client(wire)
    assert client.commit_offset(5, version=5) == 0
    assert fetched(wire, stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    partition = k28_txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=6)
    stale = k28_txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=client.producer_id,
        producer_epoch=client.epoch,
        generation_id=3,
        member_id="gone",
        topics=[k28_txn_offset_commit.TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    answer = wire.ask(stale, 5).topics[0].partitions[0].error_code
    assert answer == ErrorCode.UNKNOWN_MEMBER_ID, "KIP-447 holds in every version"
    client.finish(commit=True)
    assert fetched(wire, stable=True).committed_offset == 5
