"""Groups of the classic protocol over the wire, in every version: what the front makes of the core's answers."""

from typing import Any

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k42_delete_groups,
)
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.kafka.test_transactions_and_groups import commit, fetched
from tests.kafka.wire import Front, Wire


@pytest.fixture(autouse=True)
def topic(wire: Wire) -> None:
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)


class Member:
    def __init__(
        self,
        broker: Front,
        version: int = 4,
        subscription: bytes = b"subscription",
        instance_id: str | None = None,
    ) -> None:
        self.wire, self.version, self.member_id, self.subscription = broker.connect(), version, "", subscription
        self.instance_id = instance_id

    def request(self, **more: Any) -> k11_join_group.JoinGroupRequest:
        protocol = k11_join_group.JoinGroupRequestProtocol(name="range", metadata=self.subscription)
        values: dict[str, Any] = {
            "group_id": "g",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [protocol],
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
        }
        return k11_join_group.JoinGroupRequest(**(values | more))

    def send_join(self) -> None:
        """Ask to join; first get a member id, where the version has that."""
        if not self.member_id and self.version >= 4 and self.instance_id is None:
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
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                m.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )
        return self.wire.ask(request, 2 if self.instance_id is None else 5)

    def heartbeat(self) -> int:
        request = k12_heartbeat.HeartbeatRequest(
            group_id="g",
            member_id=self.member_id,
            generation_id=self.generation,
            group_instance_id=self.instance_id,
        )
        code: int = self.wire.ask(request, 2 if self.instance_id is None else 4).error_code
        return code


class TestGroups:
    @pytest.mark.parametrize("version", range(10))
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

    def test_no_time_for_a_rebalance_leaves_nobody_any(self, broker: Front) -> None:
        """Version 0 alone has the session's time-out for both. Apache Kafka 4.4 answers the same."""
        first, second = Member(broker, version=1), Member(broker, version=1)
        for member in (first, second):
            request = member.request(rebalance_timeout_ms=-1, session_timeout_ms=60_000)
            answer = member.wire.ask(request, member.version)
            assert (answer.error_code, len(answer.members)) == (ErrorCode.NONE, 1)
        assert answer.leader == answer.member_id

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

    @pytest.mark.parametrize("version", range(5, 10))
    def test_a_static_member_is_replaced(self, broker: Front, wire: Wire, version: int) -> None:
        """KIP-345, and what a successor of the leader is told (KIP-814)."""
        first, second = Member(broker, version, instance_id="i"), Member(broker, version, instance_id="i")
        first.send_join()
        joined = first.receive_join()
        assert [each.group_instance_id for each in joined.members] == ["i"]
        assert first.member_id.startswith("i-")
        first.sync(**{first.member_id: b"all"})
        second.send_join()
        again = second.receive_join()
        assert again.generation_id == joined.generation_id
        leads = version >= 9
        assert (again.leader, again.skip_assignment) == (second.member_id if leads else first.member_id, leads)
        assert [each.member_id for each in again.members] == ([second.member_id] if leads else [])
        assert second.sync().assignment == b"all"
        assert (first.heartbeat(), second.heartbeat()) == (ErrorCode.FENCED_INSTANCE_ID, 0)
        [shown] = wire.ask(k15_describe_groups.DescribeGroupsRequest(groups=["g"]), 5).groups[0].members
        assert (shown.member_id, shown.group_instance_id) == (second.member_id, "i")

    @pytest.mark.parametrize("version", range(3, 6))
    def test_several_leave_at_once(self, broker: Front, wire: Wire, version: int) -> None:
        member = Member(broker, 9, instance_id="i")
        member.send_join()
        member.receive_join()
        m = k13_leave_group
        members = [m.MemberIdentity(member_id="nobody"), m.MemberIdentity(group_instance_id="i")]
        left = wire.ask(m.LeaveGroupRequest(group_id="g", members=members), version)
        assert [(each.member_id, each.group_instance_id, each.error_code) for each in left.members] == [
            ("nobody", None, ErrorCode.UNKNOWN_MEMBER_ID),
            ("", "i", 0),
        ]
        left = wire.ask(m.LeaveGroupRequest(group_id="", members=members), version)
        assert (left.error_code, left.members) == (ErrorCode.INVALID_GROUP_ID, [])

    def test_a_group_that_nobody_knows(self, wire: Wire) -> None:
        request = k15_describe_groups.DescribeGroupsRequest(groups=["none"])
        [shown] = wire.ask(request, 6).groups
        assert (shown.error_code, shown.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.")
        assert shown.group_state == wire.ask(request, 5).groups[0].group_state == "Dead"

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
        for kind, count in (("Classic", 1), ("consumer", 0), ("nonsense", 0)):
            assert len(wire.ask(m.ListGroupsRequest(types_filter=[kind]), 5).groups) == count
        assert wire.ask(m.ListGroupsRequest(), 5).groups[0].group_type == "classic"
        for version in range(4):
            assert len(wire.ask(m.ListGroupsRequest(), version).groups) == 1

    @pytest.mark.parametrize("version", range(4))
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
            ("", ErrorCode.GROUP_ID_NOT_FOUND),
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
        found = wire.ask(request, 6).coordinators
        assert [(each.key, each.error_code, each.port) for each in found] == [
            ("a", 0, broker.address[1]),
            ("b", 0, broker.address[1]),
        ]

    def test_other_kinds_have_none(self, wire: Wire) -> None:
        request = k10_find_coordinator.FindCoordinatorRequest(key="s", key_type=2)
        assert wire.ask(request, 3).error_code == ErrorCode.INVALID_REQUEST
