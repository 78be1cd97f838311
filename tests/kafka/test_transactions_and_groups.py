"""Producers, transactions, offsets and groups over the wire: what the front makes of the core's answers."""

from typing import Any

import pytest

from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages import (
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k22_init_producer_id,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k28_txn_offset_commit,
    k42_delete_groups,
    k65_describe_transactions,
    k66_list_transactions,
)
from exacta.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.kafka.wire import Front, Wire


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

    def commit_offset(self, offset: int, version: int = 3, partition: int = 0, **more: Any) -> int:
        committed = k28_txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata="m"
        )
        request = k28_txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id="g",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[k28_txn_offset_commit.TxnOffsetCommitRequestTopic(name="t", partitions=[committed])],
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
        assert (waiting.error_code, waiting.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        assert fetched(wire, 8, stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
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
        gone = {"member_id": "gone", "generation_id": 3}
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
        assert listed(duration_filter=60_000) == []
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
    @pytest.mark.parametrize("version", range(2, 7))
    def test_commit_in_every_version(self, wire: Wire, version: int) -> None:
        assert commit(wire, ("t", 0, 7), version=version) == [ErrorCode.NONE]
        assert fetched(wire).committed_offset == 7

    @pytest.mark.parametrize("version", range(1, 9))
    def test_fetch_in_every_version(self, wire: Wire, version: int) -> None:
        assert fetched(wire, version).committed_offset == -1
        commit(wire, ("t", 0, 7))
        answer = fetched(wire, version)
        assert (answer.committed_offset, answer.metadata, answer.error_code) == (7, "m", 0)
        if version >= 2:
            assert fetched(wire, version, everything=True).committed_offset == 7

    def test_one_unknown_partition_does_not_refuse_the_others(self, wire: Wire) -> None:
        codes = commit(wire, ("t", 0, 7), ("nowhere", 0, 1))
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert fetched(wire).committed_offset == 7

    def test_too_much_metadata(self, wire: Wire) -> None:
        assert commit(wire, ("t", 0, 7), metadata="x" * 5000) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
        assert commit(wire, ("t", 0, 7), metadata=None) == [ErrorCode.NONE]

    def test_a_stranger_cannot_commit(self, wire: Wire) -> None:
        who = {"member_id": "who", "generation_id_or_member_epoch": 1}
        assert commit(wire, ("t", 0, 7), **who) == [ErrorCode.ILLEGAL_GENERATION], "there is no such group"
        assert commit(wire, ("t", 0, 7)) == [ErrorCode.NONE]
        assert commit(wire, ("t", 0, 8), **who) == [ErrorCode.UNKNOWN_MEMBER_ID]


class Member:
    def __init__(self, broker: Front, version: int = 4, subscription: bytes = b"subscription") -> None:
        self.wire, self.version, self.member_id, self.subscription = broker.connect(), version, "", subscription

    def request(self, **more: Any) -> k11_join_group.JoinGroupRequest:
        protocol = k11_join_group.JoinGroupRequestProtocol(name="range", metadata=self.subscription)
        values = {
            "group_id": "g",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [protocol],
            "member_id": self.member_id,
        }
        return k11_join_group.JoinGroupRequest(**(values | more))

    def send_join(self) -> None:
        """Ask to join; first get a member id, where the version has that."""
        if not self.member_id and self.version >= 4:
            told = self.wire.ask(self.request(), self.version)
            assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
            self.member_id = told.member_id
        self.wire.send(self.request(), self.version)

    def receive_join(self) -> Any:
        _, response = self.wire.receive(self.request(), self.version)
        assert response.error_code == 0
        self.member_id, self.generation = response.member_id, response.generation_id
        return response

    def sync(self, **assignments: bytes) -> Any:
        m = k14_sync_group
        request = m.SyncGroupRequest(
            group_id="g",
            member_id=self.member_id,
            generation_id=self.generation,
            assignments=[
                m.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )
        return self.wire.ask(request, 2)

    def heartbeat(self) -> int:
        request = k12_heartbeat.HeartbeatRequest(group_id="g", member_id=self.member_id, generation_id=self.generation)
        code: int = self.wire.ask(request, 2).error_code
        return code


class TestGroups:
    @pytest.mark.parametrize("version", range(5))
    def test_a_member_joins_syncs_lives_and_leaves(self, broker: Front, wire: Wire, version: int) -> None:
        member = Member(broker, version)
        member.send_join()
        joined = member.receive_join()
        assert (joined.leader, joined.protocol_name) == (member.member_id, "range")
        assert member.member_id.startswith("tester-")
        assert [(each.member_id, each.metadata) for each in joined.members] == [(member.member_id, b"subscription")]
        assert member.sync(**{member.member_id: b"all"}).assignment == b"all"
        assert member.heartbeat() == 0
        member_of = {"member_id": member.member_id, "generation_id_or_member_epoch": member.generation}
        assert commit(member.wire, ("t", 0, 3), **member_of) == [0]

        described = wire.ask(k15_describe_groups.DescribeGroupsRequest(groups=["g", "none"]), 5).groups
        assert [group.group_state for group in described] == ["Stable", "Dead"]
        [shown] = described[0].members
        assert (shown.member_id, shown.client_id, shown.client_host) == (member.member_id, "tester", "/127.0.0.1")
        assert (shown.member_metadata, shown.member_assignment) == (b"subscription", b"all")

        left = k13_leave_group.LeaveGroupRequest(group_id="g", member_id=member.member_id)
        assert wire.ask(left, 2).error_code == 0
        assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_second_member_makes_the_first_join_again(self, broker: Front) -> None:
        first, second = Member(broker), Member(broker)
        first.send_join()
        first.receive_join()
        first.sync(**{first.member_id: b"all"})
        second.send_join()
        assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        first.send_join()
        led, followed = first.receive_join(), second.receive_join()
        assert led.generation_id == followed.generation_id == 2
        assert {each.member_id for each in led.members} == {first.member_id, second.member_id}
        assert followed.members == []
        assert first.sync(**{first.member_id: b"one", second.member_id: b"two"}).assignment == b"one"
        assert second.sync().assignment == b"two"

    def test_refusals_carry_the_member_id(self, broker: Front) -> None:
        member = Member(broker)
        for more, code in (
            ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
            ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
            ({"member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ):
            response = member.wire.ask(member.request(**more), 4)
            assert (response.error_code, response.member_id) == (code, more.get("member_id", ""))

    def test_listing(self, broker: Front, wire: Wire) -> None:
        commit(wire, ("t", 0, 1))
        member = Member(broker)
        member.send_join()
        member.receive_join()
        m = k16_list_groups
        [group] = wire.ask(m.ListGroupsRequest(), 4).groups
        assert (group.group_id, group.protocol_type, group.group_state) == ("g", "consumer", "CompletingRebalance")
        assert wire.ask(m.ListGroupsRequest(states_filter=["stable"]), 4).groups == []
        assert len(wire.ask(m.ListGroupsRequest(states_filter=["completingrebalance"]), 4).groups) == 1
        for version in range(4):
            assert len(wire.ask(m.ListGroupsRequest(), version).groups) == 1

    @pytest.mark.parametrize("version", range(3))
    def test_deleting(self, broker: Front, wire: Wire, version: int) -> None:
        commit(wire, ("t", 0, 1))
        m = k42_delete_groups

        def delete(*groups: str) -> list[tuple[str, int]]:
            results = wire.ask(m.DeleteGroupsRequest(groups_names=list(groups)), version).results
            return [(each.group_id, each.error_code) for each in results]

        member = Member(broker)
        member.send_join()
        member.receive_join()
        assert delete("g", "nobody") == [("g", ErrorCode.NON_EMPTY_GROUP), ("nobody", ErrorCode.GROUP_ID_NOT_FOUND)]
        wire.ask(k13_leave_group.LeaveGroupRequest(group_id="g", member_id=member.member_id), 2)
        assert delete("g", "g", "") == [
            ("g", ErrorCode.NONE),
            ("g", ErrorCode.GROUP_ID_NOT_FOUND),
            ("", ErrorCode.INVALID_GROUP_ID),
        ]
        assert wire.ask(k16_list_groups.ListGroupsRequest(), 4).groups == []
        assert fetched(wire).committed_offset == -1


class TestFindCoordinator:
    @pytest.mark.parametrize("version", range(4))
    @pytest.mark.parametrize("kind", [0, 1])
    def test_it_is_this_broker(self, broker: Front, wire: Wire, version: int, kind: int) -> None:
        request = k10_find_coordinator.FindCoordinatorRequest(key="g", key_type=kind)
        found = wire.ask(request, version)
        assert (found.error_code, found.host, found.port) == (0, *broker.address)

    def test_several_at_once(self, broker: Front, wire: Wire) -> None:
        request = k10_find_coordinator.FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=1)
        found = wire.ask(request, 4).coordinators
        assert [(each.key, each.error_code, each.port) for each in found] == [
            ("a", 0, broker.address[1]),
            ("b", 0, broker.address[1]),
        ]

    def test_other_kinds_have_none(self, wire: Wire) -> None:
        request = k10_find_coordinator.FindCoordinatorRequest(key="s", key_type=2)
        assert wire.ask(request, 3).error_code == ErrorCode.INVALID_REQUEST
