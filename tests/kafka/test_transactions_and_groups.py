"""Producers, transactions and groups' offsets over the wire: what the front makes of the core's answers."""

from typing import Any

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k08_offset_commit,
    k09_offset_fetch,
    k22_init_producer_id,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k28_txn_offset_commit,
    k65_describe_transactions,
    k66_list_transactions,
)
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.schema import NO_UUID
from tests.kafka.wire import Wire


@pytest.fixture(autouse=True)
def topic(wire: Wire) -> None:
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)


class Producer:
    def __init__(self, wire: Wire, transactional_id: str = "x") -> None:
        self.wire, self.transactional_id = wire, transactional_id
        bound = self.init()
        self.producer_id, self.epoch = bound.producer_id, bound.producer_epoch

    def init(self, version: int = 4, **more: Any) -> Any:
        request = k22_init_producer_id.InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=60_000, **more
        )
        return self.wire.ask(request, version)

    def add_partitions(self, version: int = 3, **topics: list[int]) -> dict[tuple[str, int], int]:
        request = k24_add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                k24_add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        return {
            (result.name, each.partition_index): each.partition_error_code
            for result in self.wire.ask(request, version).results_by_topic_v3_and_below
            for each in result.results_by_partition
        }

    def add_group(self, version: int = 3, group: str = "g") -> int:
        request = k25_add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        code: int = self.wire.ask(request, version).error_code
        return code

    def commit_offset(
        self, offset: int, version: int = 3, partition: int = 0, topic_id: bytes = NO_UUID, **more: Any
    ) -> int:
        committed = k28_txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata="m"
        )
        request = k28_txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id="g",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[
                k28_txn_offset_commit.TxnOffsetCommitRequestTopic(name="t", topic_id=topic_id, partitions=[committed])
            ],
            **more,
        )
        code: int = self.wire.ask(request, version).topics[0].partitions[0].error_code
        return code

    def end(self, version: int = 4, *, commit: bool) -> int:
        request = k26_end_txn.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        code: int = self.wire.ask(request, version).error_code
        return code


def fetched(wire: Wire, version: int = 7, *, stable: bool = False, group: str = "g", everything: bool = False) -> Any:
    """Return the partition's answer for topic t, partition 0."""
    m = k09_offset_fetch
    if version < 8:
        topics = None if everything else [m.OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
        request = m.OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable)
        return wire.ask(request, version).topics[0].partitions[0]
    asked = None if everything else [m.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    request = m.OffsetFetchRequest(
        groups=[m.OffsetFetchRequestGroup(group_id=group, topics=asked)], require_stable=stable
    )
    return wire.ask(request, version).groups[0].topics[0].partitions[0]


def commit(
    wire: Wire, *offsets: tuple[str, int, int], version: int = 6, metadata: str | None = "m", **member: Any
) -> Any:
    m = k08_offset_commit
    topics = [
        m.OffsetCommitRequestTopic(
            name=name,
            partitions=[
                m.OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=metadata
                )
            ],
        )
        for name, partition, offset in offsets
    ]
    response = wire.ask(m.OffsetCommitRequest(group_id="g", topics=topics, **member), version)
    return [topic.partitions[0].error_code for topic in response.topics]


class TestProducers:
    @pytest.mark.parametrize("version", range(6))
    def test_an_idempotent_producer_gets_an_id_of_its_own(self, wire: Wire, version: int) -> None:
        request = k22_init_producer_id.InitProducerIdRequest(transaction_timeout_ms=1)
        first, second = wire.ask(request, version), wire.ask(request, version)
        assert first.error_code == second.error_code == 0
        assert (first.producer_epoch, second.producer_epoch) == (0, 0)
        assert first.producer_id != second.producer_id

    def test_an_id_without_an_epoch_is_no_request(self, wire: Wire) -> None:
        request = k22_init_producer_id.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
        request.producer_id = 5
        assert wire.ask(request, 4).error_code == ErrorCode.INVALID_REQUEST

    def test_limits(self, wire: Wire) -> None:
        request = k22_init_producer_id.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=900_001)
        assert wire.ask(request, 4).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        request = k22_init_producer_id.InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
        assert wire.ask(request, 4).error_code == ErrorCode.INVALID_REQUEST

    def test_a_zombie_is_fenced_in_the_words_of_its_version(self, wire: Wire) -> None:
        zombie = Producer(wire)
        Producer(wire)
        old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
        assert zombie.add_partitions(version=1, t=[0]) == {("t", 0): old}
        assert zombie.add_partitions(version=2, t=[0]) == {("t", 0): new}
        assert (zombie.add_group(version=1), zombie.add_group(version=2)) == (old, new)
        assert (zombie.end(version=1, commit=True), zombie.end(version=2, commit=True)) == (old, new)
        assert zombie.commit_offset(1) == old
        held = {"producer_id": zombie.producer_id, "producer_epoch": zombie.epoch}
        assert (zombie.init(3, **held).error_code, zombie.init(4, **held).error_code) == (old, new)


class TestTransactions:
    @pytest.mark.parametrize("version", range(4))
    def test_partitions_are_added_all_or_none(self, wire: Wire, version: int) -> None:
        producer = Producer(wire)
        assert producer.add_partitions(version, t=[0, 9], u=[0]) == {
            ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert producer.add_partitions(version, t=[0]) == {("t", 0): ErrorCode.NONE}

    @pytest.mark.parametrize("version", range(5))
    @pytest.mark.parametrize("committed", [True, False])
    def test_offsets_are_pending_until_the_end(self, wire: Wire, version: int, committed: bool) -> None:
        producer = Producer(wire)
        assert producer.add_group(min(version, 3)) == 0
        assert producer.commit_offset(5, version) == 0
        assert fetched(wire).committed_offset == -1
        waiting = fetched(wire, stable=True)
        assert (waiting.error_code, waiting.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1000)
        waiting = fetched(wire, 8, stable=True)
        assert (waiting.error_code, waiting.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1000)
        assert (waiting.committed_leader_epoch, waiting.metadata) == (-1, "")
        assert producer.end(version, commit=committed) == 0
        assert producer.end(version, commit=committed) == 0
        ended = fetched(wire, stable=True)
        assert (ended.error_code, ended.committed_offset) == (0, 5 if committed else -1)

    def test_offsets_of_a_transaction_that_was_not_begun_are_abortable(self, wire: Wire) -> None:
        producer = Producer(wire)
        assert producer.commit_offset(5, 3) == ErrorCode.ILLEGAL_GENERATION
        assert producer.commit_offset(5, 4) == ErrorCode.TRANSACTION_ABORTABLE
        assert producer.end(commit=False) == 0

    def test_offsets_of_a_stale_member_are_refused(self, wire: Wire) -> None:
        producer = Producer(wire)
        producer.add_group()
        gone: dict[str, Any] = {"member_id": "gone", "generation_id": 3}
        assert producer.commit_offset(5, **gone) == ErrorCode.ILLEGAL_GENERATION, "there is no such group"
        assert producer.commit_offset(5) == 0
        assert producer.commit_offset(6, **gone) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_describing_and_listing(self, wire: Wire) -> None:
        producer, idle = Producer(wire), Producer(wire, "idle")
        producer.add_partitions(t=[0])
        m = k65_describe_transactions
        described, unknown = wire.ask(
            m.DescribeTransactionsRequest(transactional_ids=["x", "nobody"]), 0
        ).transaction_states
        assert (described.transaction_state, described.producer_id) == ("Ongoing", producer.producer_id)
        assert described.transaction_start_time_ms > 0
        assert described.topics == [m.TopicData(topic="t", partitions=[0])]
        assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

        def listed(version: int = 1, **filters: Any) -> list[str]:
            request = k66_list_transactions.ListTransactionsRequest(**filters)
            return [each.transactional_id for each in wire.ask(request, version).transaction_states]

        assert listed(0) == ["x", "idle"]
        assert listed(state_filters=["Ongoing"]) == ["x"]
        assert listed(state_filters=["Empty"]) == ["idle"]
        assert listed(producer_id_filters=[idle.producer_id]) == ["idle"]
        assert listed(duration_filter=60_000) == ["idle"]  # never begun: older than anything
        request = k66_list_transactions.ListTransactionsRequest(state_filters=["Nonsense", "Ongoing"])
        assert wire.ask(request, 1).unknown_state_filters == ["Nonsense"]
        producer.end(commit=True)
        described = wire.ask(m.DescribeTransactionsRequest(transactional_ids=["x"]), 0).transaction_states[0]
        assert (described.transaction_state, described.topics) == ("CompleteCommit", [])

    @pytest.mark.parametrize(
        ("pattern", "listed"),
        [
            ("job-a-.*", ["job-a-0", "job-a-1"]),
            ("job-.", []),  # the whole name is meant
            (r"job\-a\-0", ["job-a-0"]),
            ("job-(a|b)-0|nobody", ["job-a-0", "job-b-0"]),
            ("", ["job-a-0", "job-a-1", "job-b-0"]),
            (None, ["job-a-0", "job-a-1", "job-b-0"]),
            ("(([a-z]+-)+)+!", []),  # Python's re would still be at it tomorrow
        ],
    )
    def test_listing_by_name(self, wire: Wire, pattern: str | None, listed: list[str]) -> None:
        for name in ("job-a-0", "job-a-1", "job-b-0", *(() if listed else ("a-" * 200,))):
            Producer(wire, name)
        request = k66_list_transactions.ListTransactionsRequest(transactional_id_pattern=pattern)
        assert [each.transactional_id for each in wire.ask(request, 2).transaction_states] == listed

    @pytest.mark.parametrize("pattern", ["(", "a{1000}{1000}", r"(a)\1", "((a{100}){100}){100}"])
    def test_a_pattern_that_is_none_or_too_large(self, wire: Wire, pattern: str) -> None:
        request = k66_list_transactions.ListTransactionsRequest(transactional_id_pattern=pattern)
        assert wire.ask(request, 2).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


class TestOffsets:
    @pytest.mark.parametrize("version", range(2, 10))
    def test_commit_in_every_version(self, wire: Wire, version: int) -> None:
        assert commit(wire, ("t", 0, 7), version=version) == [ErrorCode.NONE]
        assert fetched(wire).committed_offset == 7

    @pytest.mark.parametrize("version", range(1, 10))
    def test_fetch_in_every_version(self, wire: Wire, version: int) -> None:
        assert fetched(wire, version).committed_offset == -1
        commit(wire, ("t", 0, 7))
        answer = fetched(wire, version)
        assert (answer.committed_offset, answer.metadata, answer.error_code) == (7, "m", 0)
        if version >= 2:
            assert fetched(wire, version, everything=True).committed_offset == 7

    def test_topics_named_by_id(self, wire: Wire) -> None:
        topic_id = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12).topics[0].topic_id
        k08, k28, k09 = k08_offset_commit, k28_txn_offset_commit, k09_offset_fetch
        ids = {"t": topic_id, "gone": b"?" * 16}
        partition = k08.OffsetCommitRequestPartition(committed_offset=7, committed_metadata="m")
        committed = [k08.OffsetCommitRequestTopic(topic_id=each, partitions=[partition]) for each in ids.values()]
        answers = wire.ask(k08.OffsetCommitRequest(group_id="g", topics=committed), 10).topics
        codes = {answer.topic_id: answer.partitions[0].error_code for answer in answers}
        assert codes == {ids["t"]: 0, ids["gone"]: ErrorCode.UNKNOWN_TOPIC_ID}
        producer = Producer(wire)
        pending = k28.TxnOffsetCommitRequestPartition(committed_offset=8, committed_metadata="m")
        topics = [k28.TxnOffsetCommitRequestTopic(topic_id=each, partitions=[pending]) for each in ids.values()]
        request = k28.TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=topics,
        )
        codes = {answer.topic_id: answer.partitions[0].error_code for answer in wire.ask(request, 6).topics}
        assert codes == {ids["t"]: 0, ids["gone"]: ErrorCode.UNKNOWN_TOPIC_ID}
        assert producer.end(commit=True) == 0
        both = [k09.OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in ids.values()]
        for asked in (both, None):
            wanted = k09.OffsetFetchRequest(groups=[k09.OffsetFetchRequestGroup(group_id="g", topics=asked)])
            answers = wire.ask(wanted, 10).groups[0].topics
            found = {answer.topic_id: answer.partitions[0] for answer in answers}
            assert (found[ids["t"]].committed_offset, found[ids["t"]].metadata) == (8, "m")
            assert (ids["gone"] in found) == (asked is not None)
        assert fetched(wire).committed_offset == 8

    def test_one_unknown_partition_does_not_refuse_the_others(self, wire: Wire) -> None:
        codes = commit(wire, ("t", 0, 7), ("nowhere", 0, 1))
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert fetched(wire).committed_offset == 7

    def test_too_much_metadata(self, wire: Wire) -> None:
        assert commit(wire, ("t", 0, 7), metadata="x" * 5000) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
        assert commit(wire, ("t", 0, 7), metadata=None) == [ErrorCode.NONE]

    def test_a_stranger_cannot_commit(self, wire: Wire) -> None:
        who: dict[str, Any] = {"member_id": "who", "generation_id_or_member_epoch": 1}
        assert commit(wire, ("t", 0, 7), **who) == [ErrorCode.ILLEGAL_GENERATION], "there is no such group"
        assert commit(wire, ("t", 0, 7)) == [ErrorCode.NONE]
        assert commit(wire, ("t", 0, 8), **who) == [ErrorCode.UNKNOWN_MEMBER_ID]
