"""What a follower answers by itself, API by API and version by version, and what it leaves to the leader."""

from collections.abc import Iterator
from typing import Any

import pytest

from exacta.kafka.at_follower import CATCHES_UP, EMPTY, SERVES
from exacta.kafka.handler import Handler
from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k00_produce,
    k03_metadata,
    k10_find_coordinator,
    k16_list_groups,
    k22_init_producer_id,
    k32_describe_configs,
    k44_incremental_alter_configs,
    k60_describe_cluster,
    k66_list_transactions,
    k75_describe_topic_partitions,
)
from exacta.readmodel.cluster import AskCluster, ClusterStatus
from exacta.readmodel.transactions import AskTransactions
from tests.kafka.access_cases import CASES
from tests.kafka.access_requests import Names
from tests.kafka.access_rules import SEEN, Rules, codes, furnish, names, nothing
from tests.kafka.asking import ask, refusal
from tests.kafka.following import FOLLOWER, LEADER, Follower, following
from tests.kafka.wire import batch, produce
from tests.waiting import wait_until

NONE = ErrorCode.NONE
REFUSALS = {each.at_follower.code for each in HANDLERS.values()} | {ErrorCode.UNKNOWN_SERVER_ERROR}
DECIDED = [
    each for each in HANDLERS.values() if each.at_follower.code is not None or each.at_follower in (SERVES, CATCHES_UP)
]
GROUP, TRANSACTION = 0, 1
BROKER, BROKER_LOGGER, TOPIC = 4, 8, 2


@pytest.fixture
def follower() -> Iterator[Follower]:
    with following() as running:
        yield running


@pytest.fixture
def furnished(follower: Follower) -> Names:
    """The resources of the log that both brokers have."""
    _, ids, bound = furnish(follower.leading)
    return names(SEEN, ids=ids, bound=bound)


def test_every_handler_is_looked_at() -> None:
    by_request = {key for key, each in HANDLERS.items() if each not in DECIDED}
    assert by_request == {
        ApiKey.FETCH,
        ApiKey.METADATA,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ASK,
    }


@pytest.mark.parametrize("handler", DECIDED, ids=lambda handler: handler.name)
def test_every_api_and_version(follower: Follower, furnished: Names, handler: Handler) -> None:
    """What is served is what the leader says of the same log, and what is refused does what is declared."""
    for version in range(handler.min_version, handler.max_version + 1):
        request = CASES[handler.key].build(version, furnished)
        wire = follower.connect()
        answer = wire.ask(request, version)
        if handler.at_follower in (SERVES, CATCHES_UP):
            assert not codes(answer) & REFUSALS
            assert answer == follower.leading.connect().ask(request, version)
        elif handler.at_follower is EMPTY:
            assert answer == type(answer)()
        else:
            assert codes(answer) - {ErrorCode.OPERATION_NOT_ATTEMPTED} == {handler.at_follower.code}
        assert not handler.at_follower.ends_connection or wire.is_closed()


@pytest.mark.parametrize("handler", DECIDED, ids=lambda handler: handler.name)
def test_a_refusal_needs_no_right(follower: Follower, furnished: Names, handler: Handler) -> None:
    """A follower looks at nothing that such a request names; what it serves it shows to nobody else than the leader."""
    follower.context.authorizer = Rules(nothing)
    declared, version = handler.at_follower, handler.max_version
    answer = follower.connect().ask(CASES[handler.key].build(version, furnished), version)
    if declared in (SERVES, CATCHES_UP) and handler.needs:
        assert CASES[handler.key].code in codes(answer) | {None}
    elif declared.code is not None and not declared.is_empty:
        assert codes(answer) - {ErrorCode.OPERATION_NOT_ATTEMPTED} == {declared.code}


@pytest.mark.parametrize(
    "handler", [each for each in HANDLERS.values() if each.at_follower.catches_up], ids=lambda handler: handler.name
)
def test_what_the_log_says_is_said_by_one_that_has_caught_up(follower: Follower, handler: Handler) -> None:
    """Else the answer might be behind an earlier one of another broker."""
    follower.hold_back()
    wire, version = follower.connect(), handler.max_version
    request = CASES[handler.key].build(version, names(SEEN))
    wire.send(request, version)
    wire.send(CASES[ApiKey.API_VERSIONS].build(3, names(SEEN)), 3)  # it is served in its turn, behind the other
    wait_until(lambda: follower.held_back == 1, 10)
    follower.go_on()
    assert wire.receive(request, version)[0] == 1
    assert wire.receive(CASES[ApiKey.API_VERSIONS].build(3, names(SEEN)), 3)[0] == 2


def test_a_follower_tells_of_the_cluster_and_of_nothing_else(follower: Follower) -> None:
    wire = follower.connect()
    found = ask(wire, AskCluster(), ClusterStatus)
    assert (found.answered_by, found.leader) == (FOLLOWER, LEADER)
    assert refusal(wire, AskTransactions()) == ErrorCode.NOT_CONTROLLER
    follower.context.authorizer = Rules(nothing)
    assert refusal(wire, AskCluster()) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# --- who leads --------------------------------------------------------------------------------------------------------


def _metadata(follower: Follower, version: int, *topics: str, create: bool = False) -> Any:
    asked = [k03_metadata.MetadataRequestTopic(name=topic) for topic in topics]
    request = k03_metadata.MetadataRequest(topics=asked, allow_auto_topic_creation=create)
    return follower.connect().ask(request, version)


def _described(follower: Follower) -> Any:
    topics = [k75_describe_topic_partitions.TopicRequest(name=f"{SEEN}-t")]
    request = k75_describe_topic_partitions.DescribeTopicPartitionsRequest(topics=topics)
    return follower.connect().ask(request, 0)


@pytest.mark.parametrize("version", range(1, 14))
def test_metadata_names_all_brokers_and_the_leader(follower: Follower, furnished: Names, version: int) -> None:
    told = _metadata(follower, version, *furnished.topics)
    found = {each.node_id: (each.host, each.port) for each in told.brokers}
    assert found == {LEADER: follower.leading.address, FOLLOWER: follower.address}
    assert told.controller_id == LEADER
    for each in (told, _described(follower)):
        [partition] = each.topics[0].partitions
        assert (partition.leader_id, partition.replica_nodes) == (LEADER, [LEADER, FOLLOWER])
        assert partition.isr_nodes == partition.replica_nodes


def test_the_cluster_is_described_with_its_racks() -> None:
    with following(racks=("east", "west")) as follower:
        for wire in (follower.connect(), follower.leading.connect()):
            told = wire.ask(k60_describe_cluster.DescribeClusterRequest(), 2)
            found = [(each.broker_id, each.rack, each.is_fenced) for each in told.brokers]
            assert (told.controller_id, found) == (LEADER, [(LEADER, "east", False), (FOLLOWER, "west", False)])


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_the_leader_coordinates(follower: Follower, version: int, kind: int) -> None:
    if kind and not version:
        return
    request = k10_find_coordinator.FindCoordinatorRequest(key="g", key_type=kind, coordinator_keys=["g", "h"])
    told = follower.connect().ask(request, version)
    for each in told.coordinators or [told]:
        assert (each.error_code, each.node_id, (each.host, each.port)) == (NONE, LEADER, follower.leading.address)


class TestWithoutALeader:
    @pytest.fixture(autouse=True)
    def gone(self, follower: Follower, furnished: Names) -> None:
        follower.cluster.leader, follower.cluster.nodes = None, follower.nodes[1:]

    @pytest.mark.parametrize("version", range(1, 14))
    def test_partitions_have_none(self, follower: Follower, version: int) -> None:
        told = _metadata(follower, version, f"{SEEN}-t")
        assert ([each.node_id for each in told.brokers], told.controller_id) == ([FOLLOWER], -1)
        for each in (told, _described(follower)):
            [partition] = each.topics[0].partitions
            assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            assert partition.replica_nodes == [FOLLOWER]

    @pytest.mark.parametrize("version", range(7))
    def test_nobody_coordinates(self, follower: Follower, version: int) -> None:
        request = k10_find_coordinator.FindCoordinatorRequest(key="g", coordinator_keys=["g"])
        told = follower.connect().ask(request, version)
        for each in told.coordinators or [told]:
            assert (each.error_code, each.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)

    def test_there_is_no_controller(self, follower: Follower) -> None:
        assert follower.connect().ask(k60_describe_cluster.DescribeClusterRequest(), 2).controller_id == -1

    def test_a_list_is_not_empty_but_unknown(self, follower: Follower) -> None:
        """An empty answer of every broker would say that there is no group, and no transaction."""
        for request in (k16_list_groups.ListGroupsRequest(), k66_list_transactions.ListTransactionsRequest()):
            for version in range(HANDLERS[request.SCHEMA.key].max_version + 1):
                answer = follower.connect().ask(request, version)
                assert codes(answer) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}

    def test_a_produce_has_no_hint(self, follower: Follower) -> None:
        answer = produce(follower.connect(), batch(b"x"), topic=f"{SEEN}-t")
        assert (answer.error_code, answer.current_leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, None)


@pytest.mark.parametrize("version", range(1, 14))
def test_a_leader_without_the_clients_door_cannot_be_reached(
    follower: Follower, furnished: Names, version: int
) -> None:
    """As in Apache Kafka, where a client's listener is one that the leader does not have."""
    elsewhere = follower.nodes[0]._replace(addresses={"INSIDE": ("h", 1)})
    follower.cluster.leader, follower.cluster.nodes = elsewhere, [elsewhere, follower.nodes[1]]
    told = _metadata(follower, version, *furnished.topics)
    code = ErrorCode.LISTENER_NOT_FOUND if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
    assert [each.node_id for each in told.brokers] == [FOLLOWER]
    assert told.topics[0].partitions[0].error_code == code
    request = k10_find_coordinator.FindCoordinatorRequest(key="g")
    assert follower.connect().ask(request, 3).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


# --- writes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3, 14))
def test_a_produce_is_told_who_leads(follower: Follower, furnished: Names, version: int) -> None:
    request = CASES[ApiKey.PRODUCE].build(version, furnished)
    answer = follower.connect().ask(request, version)
    [partition] = answer.responses[0].partition_responses
    assert (partition.error_code, partition.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    if version < 10:
        assert (partition.current_leader, answer.node_endpoints) == (None, [])
        return
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (LEADER, 0)
    [told] = answer.node_endpoints
    assert (told.node_id, (told.host, told.port)) == (LEADER, follower.leading.address)


def test_a_produce_that_wants_no_answer_loses_its_connection(follower: Follower, furnished: Names) -> None:
    """Else the client would write into the void for ever."""
    wire, request = follower.connect(), CASES[ApiKey.PRODUCE].build(9, furnished)
    assert isinstance(request, k00_produce.ProduceRequest)
    request.acks = 0
    wire.send(request, 9)
    assert wire.is_closed()


@pytest.mark.parametrize("version", range(6))
def test_ids_of_producers_come_from_the_leader(follower: Follower, version: int) -> None:
    """A client without a transactional id asks any broker: it must not stay with this one."""
    wire = follower.connect()
    bound = wire.ask(k22_init_producer_id.InitProducerIdRequest(transactional_id="x"), version)
    assert (bound.error_code, bound.producer_epoch) == (ErrorCode.NOT_COORDINATOR, -1)
    free = wire.ask(k22_init_producer_id.InitProducerIdRequest(), version)
    assert (free.error_code, free.producer_epoch) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    assert wire.is_closed()


@pytest.mark.parametrize("version", range(4, 14))
def test_a_topic_is_created_by_the_leader(follower: Follower, version: int) -> None:
    """The client must not stay with a broker that creates nothing."""
    wire = follower.connect()
    topics = [k03_metadata.MetadataRequestTopic(name="new")]
    told = wire.ask(k03_metadata.MetadataRequest(topics=topics), version)
    assert told.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert wire.is_closed()
    assert follower.leading.engine.visible("new", 0) is None
    told = follower.leading.connect().ask(k03_metadata.MetadataRequest(topics=topics), version)
    assert told.topics[0].error_code == NONE
    assert _metadata(follower, version, "new", create=True).topics[0].error_code == NONE


@pytest.mark.parametrize("refused", [{"create": False}, {"name": "?"}, {"auto_create": False}])
def test_what_nobody_creates_is_unknown_here_as_well(refused: dict[str, Any]) -> None:
    with following(auto_create_topics_enable=refused.get("auto_create", True)) as follower:
        name, create = refused.get("name", "new"), refused.get("create", True)
        answers = []
        for wire in (follower.connect(), follower.leading.connect()):
            topics = [k03_metadata.MetadataRequestTopic(name=name)]
            request = k03_metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=create)
            answers += [wire.ask(request, 9).topics for _ in range(2)]  # the connection goes on
        assert len({str(each) for each in answers}) == 1


# --- configurations ---------------------------------------------------------------------------------------------------


def _altered(follower: Follower, at_leader: bool, resource_type: int, name: str, config: str, value: str) -> int:
    configs = [k44_incremental_alter_configs.AlterableConfig(name=config, value=value)]
    resource = k44_incremental_alter_configs.AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=configs
    )
    wire = (follower.leading if at_leader else follower).connect()
    request = k44_incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    return int(wire.ask(request, 1).responses[0].error_code)


def _option(follower: Follower, at_leader: bool, node_id: int, name: str) -> Any:
    resource = k32_describe_configs.DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(node_id), configuration_keys=[name]
    )
    wire = (follower.leading if at_leader else follower).connect()
    [result] = wire.ask(k32_describe_configs.DescribeConfigsRequest(resources=[resource]), 4).results
    return result.error_code, [each.value for each in result.configs]


def test_options_of_any_broker_are_set_at_the_leader(follower: Follower) -> None:
    name = "max.connections"
    for node_id in (LEADER, FOLLOWER):
        assert _altered(follower, True, BROKER, str(node_id), name, str(100 + node_id)) == NONE
    assert _altered(follower, False, BROKER, str(LEADER), name, "100") == ErrorCode.NOT_CONTROLLER
    assert _altered(follower, False, BROKER, str(FOLLOWER), name, "100") == ErrorCode.INVALID_REQUEST
    assert _altered(follower, True, BROKER, "3", name, "100") == ErrorCode.INVALID_REQUEST
    assert _option(follower, True, LEADER, name) == (NONE, ["101"])
    assert _option(follower, False, FOLLOWER, name) == (NONE, ["102"])
    assert follower.context.configuration.max_connections == 102


def test_each_broker_describes_its_own_options(follower: Follower) -> None:
    """It does not know with what another one was started."""
    assert _option(follower, True, FOLLOWER, "max.connections") == (ErrorCode.INVALID_REQUEST, [])
    assert _option(follower, False, LEADER, "max.connections") == (ErrorCode.INVALID_REQUEST, [])


def test_each_broker_has_its_own_loggers(follower: Follower) -> None:
    assert _altered(follower, False, BROKER_LOGGER, str(FOLLOWER), "exacta.kafka", "INFO") == NONE
    assert _altered(follower, False, BROKER_LOGGER, str(LEADER), "exacta.kafka", "INFO") == ErrorCode.INVALID_REQUEST


def test_topics_are_configured_at_the_leader(follower: Follower, furnished: Names) -> None:
    changed = TOPIC, furnished.topics[0], "retention.ms", "1000"
    assert _altered(follower, False, *changed) == ErrorCode.NOT_CONTROLLER
    assert _altered(follower, True, *changed) == NONE
