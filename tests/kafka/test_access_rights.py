"""Requests that need several rights: one does not give the other, and each is asked about anew."""

from typing import Any

import msgspec
import pytest

from exacta.ports.authorizer import AllowAll, Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k00_produce,
    k01_fetch,
    k03_metadata,
    k10_find_coordinator,
    k22_init_producer_id,
    k32_describe_configs,
    k60_describe_cluster,
    k68_consumer_group_heartbeat,
    k69_consumer_group_describe,
)
from tests.kafka.access_cases import CASES
from tests.kafka.access_requests import Names
from tests.kafka.access_rules import (
    GROUP,
    HIDDEN,
    ID,
    NONE,
    SEEN,
    TOPIC,
    Rules,
    about,
    but_hidden,
    codes,
    nothing,
    rule,
)
from tests.kafka.wire import Front, Wire

# --- rights of their own ----------------------------------------------------------------------------------------------


def only(*rights: tuple[Operation, ResourceKind]) -> Rules:
    return Rules(lambda operation, resource: (operation, resource.kind) in rights)


def test_a_transactional_id_and_a_topic_are_two_rights(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open
    request = msgspec.structs.replace(CASES[ApiKey.PRODUCE].build(11, both), transactional_id=f"{SEEN}-x")
    rule(broker, only((Operation.WRITE, ResourceKind.TOPIC)))
    assert codes(wire.ask(request, 11)) == {ID}
    rule(broker, only((Operation.WRITE, ResourceKind.TRANSACTIONAL_ID)))
    assert codes(wire.ask(request, 11)) == {TOPIC}


def test_a_producer_without_transactions_needs_one_topic_or_the_cluster(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, _ = half_open
    request = k22_init_producer_id.InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
    for rights, code in [
        (only(), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (only((Operation.WRITE, ResourceKind.TOPIC)), NONE),
        (only((Operation.IDEMPOTENT_WRITE, ResourceKind.CLUSTER)), NONE),
    ]:
        rule(broker, rights)
        assert wire.ask(request, 4).error_code == code


def test_a_topic_may_be_created_by_a_right_on_the_cluster(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open
    rule(broker, only((Operation.CREATE, ResourceKind.CLUSTER)))
    [first, _] = wire.ask(CASES[ApiKey.CREATE_TOPICS].build(7, both), 7).topics
    assert (first.error_code, first.topic_config_error_code, first.num_partitions) == (NONE, TOPIC, -1)
    assert not first.configs


@pytest.mark.parametrize("may_create", [True, False])
def test_metadata_creates_what_the_client_may_create(half_open: tuple[Front, Wire, Names], may_create: bool) -> None:
    broker, wire, _ = half_open
    rights = [(Operation.DESCRIBE, ResourceKind.TOPIC)] + [(Operation.CREATE, ResourceKind.TOPIC)] * may_create
    rule(broker, only(*rights))
    request = k03_metadata.MetadataRequest(topics=[k03_metadata.MetadataRequestTopic(name="fresh")])
    [topic] = wire.ask(request, 9).topics
    assert topic.error_code == (NONE if may_create else TOPIC)
    assert (broker.on_loop(lambda: broker.engine.visible("fresh", 0)) is not None) is may_create


def test_groups_and_resources_of_other_kinds_have_codes_of_their_own(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, _ = half_open
    rule(broker, Rules(nothing))
    resources = [
        k32_describe_configs.DescribeConfigsResource(resource_type=kind, resource_name="x") for kind in (2, 4, 32, 99)
    ]
    answer = wire.ask(k32_describe_configs.DescribeConfigsRequest(resources=resources), 4)
    assert {each.resource_type: each.error_code for each in answer.results} == {
        2: TOPIC,
        4: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        32: GROUP,
        99: ErrorCode.INVALID_REQUEST,
    }
    keys = k10_find_coordinator.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
    assert codes(wire.ask(keys, 4)) == {ID}


def test_what_is_allowed_is_told_in_bits(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open
    rule(broker, only((Operation.DESCRIBE, ResourceKind.TOPIC), (Operation.READ, ResourceKind.TOPIC)))
    answer = wire.ask(CASES[ApiKey.METADATA].build(9, both), 9)
    assert {each.topic_authorized_operations for each in answer.topics} == {1 << 3 | 1 << 8}
    request = k60_describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert wire.ask(request, 0).cluster_authorized_operations == 0
    rule(broker, only((Operation.DESCRIBE, ResourceKind.CLUSTER)))
    assert wire.ask(request, 0).cluster_authorized_operations == 1 << 8


def test_a_group_of_consumers_with_a_hidden_topic_is_not_described(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open
    rule(broker, AllowAll())
    for group, topics in (("c-both", both.topics), ("c-one", both.topics[:1])):
        joining = CASES[ApiKey.CONSUMER_GROUP_HEARTBEAT].build(
            1, msgspec.structs.replace(both, groups=[group], topics=topics)
        )
        assert wire.ask(joining, 1).error_code == NONE
    rule(broker, Rules(but_hidden))
    asked = k69_consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["c-both", "c-one", f"{HIDDEN}-g"])
    answer = wire.ask(asked, 1)
    assert [(each.error_code, len(each.members)) for each in answer.groups] == [(TOPIC, 0), (NONE, 1), (GROUP, 0)]
    assert f"{HIDDEN}-t" not in repr(answer)
    joining = k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="c-new",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[f"{HIDDEN}-t"],
        topic_partitions=[],
    )
    assert wire.ask(joining, 1).error_code == TOPIC


def test_a_pattern_tells_nothing_of_topics_that_the_member_may_not_describe(
    half_open: tuple[Front, Wire, Names],
) -> None:
    broker, wire, both = half_open

    def told(group: str) -> set[bytes]:
        joining = k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_regex=".*-t",
            topic_partitions=[],
        )
        return {each.topic_id for each in wire.ask(joining, 1).assignment.topic_partitions}

    assert told("c-half") == {both.ids[f"{SEEN}-t"]}
    asked = k69_consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["c-half"])
    assert wire.ask(asked, 1).groups[0].error_code == NONE, "an error would tell that the pattern matches more"
    rule(broker, AllowAll())
    assert told("c-all") == set(both.ids.values())
    rule(broker, Rules(but_hidden))
    assert told("c-all") == {both.ids[f"{SEEN}-t"]}, "the other topic has been matched with another's rights"


# --- fetch sessions, acks, principals ---------------------------------------------------------------------------------


def test_a_session_asks_anew_each_time(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open
    request = CASES[ApiKey.FETCH].build(12, both)
    assert isinstance(request, k01_fetch.FetchRequest)
    request.session_epoch = 0
    for topic in request.topics:
        topic.partitions[0].fetch_offset = 2  # at the end, so that only changes are told
    first = wire.ask(request, 12)
    assert codes(about(first, f"{HIDDEN}-t")) == {TOPIC}

    def told(epoch: int) -> dict[str, set[int]]:
        later = wire.ask(k01_fetch.FetchRequest(session_id=first.session_id, session_epoch=epoch), 12)
        return {topic.topic: codes(topic) for topic in later.responses}

    rule(broker, Rules(nothing))
    assert told(1) == {f"{SEEN}-t": {TOPIC}, f"{HIDDEN}-t": {TOPIC}}
    rule(broker, AllowAll())
    assert told(2) == {f"{SEEN}-t": set(), f"{HIDDEN}-t": set()}, "what follows an error is told"
    assert told(3) == {}


def test_a_replica_needs_a_right_on_the_cluster(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open
    rule(broker, only((Operation.READ, ResourceKind.TOPIC)))
    request = msgspec.structs.replace(CASES[ApiKey.FETCH].build(12, both), replica_id=1)
    assert codes(wire.ask(request, 12)) == {TOPIC}


@pytest.mark.parametrize("allowed", [nothing, but_hidden])
def test_a_client_that_wants_no_answer_loses_its_connection(half_open: tuple[Front, Wire, Names], allowed: Any) -> None:
    broker, wire, both = half_open
    rule(broker, Rules(allowed))
    request = CASES[ApiKey.PRODUCE].build(11, both)
    assert isinstance(request, k00_produce.ProduceRequest)
    request.acks = 0
    wire.send(request, 11)
    assert wire.is_closed()


def test_the_authorizer_learns_who_asks_and_from_where(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open
    rules = Rules(but_hidden)
    rule(broker, rules)
    wire.ask(CASES[ApiKey.LIST_OFFSETS].build(7, both), 7)
    assert rules.clients == {("User:ANONYMOUS", "127.0.0.1")}


def test_an_authorizer_that_allows_everything_is_not_asked(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open

    class Silent(AllowAll):
        def allows(self, *asked: Any) -> bool:
            raise AssertionError("asked in vain")

    rule(broker, Silent())
    for key, version in [(ApiKey.PRODUCE, 11), (ApiKey.FETCH, 12), (ApiKey.METADATA, 9), (ApiKey.OFFSET_FETCH, 8)]:
        assert codes(wire.ask(CASES[key].build(version, both), version)) == set()


def test_a_topic_within_one_of_several_groups(half_open: tuple[Front, Wire, Names]) -> None:
    _, wire, both = half_open
    seen = msgspec.structs.replace(both, groups=[f"{SEEN}-g"])
    answer = wire.ask(CASES[ApiKey.OFFSET_FETCH].build(9, seen), 9)
    assert codes(about(answer, f"{HIDDEN}-t")) == {TOPIC}
    [offset] = about(answer, f"{SEEN}-t").partitions
    assert (offset.error_code, offset.committed_offset) == (NONE, 1)
