"""`__consumer_offsets` and `__transaction_state`: who makes them, what can be done with them (decision 0029).

With EXACTA_TEST_BROKER=kafka the broker is an Apache Kafka, which answers the same.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k01_fetch, k08_offset_commit, k20_delete_topics, k24_add_partitions_to_txn
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from exacta.protocol.kafka.messages.k10_find_coordinator import FindCoordinatorRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from exacta.protocol.kafka.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from exacta.protocol.kafka.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from exacta.protocol.kafka.messages.k75_describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from tests.conformance import brokers
from tests.kafka.pipelined_writes import done
from tests.kafka.test_deleting_records import delete as delete_records
from tests.kafka.test_topics import create, metadata
from tests.kafka.wire import Wire, batch, front, produce, values_in

TOPICS = ["__consumer_offsets", "__transaction_state"]
GROUP, TRANSACTION = 0, 1
NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A connection to a broker whose coordinators have been looked for."""
    if brokers.ON_KAFKA:
        with brokers.broker_process(tmp_path_factory.mktemp("kafka")) as broker:
            host, port = broker.bootstrap.split(":")
            wire = Wire((host, int(port)))
            look_for_coordinators(wire)
            yield wire
            wire.socket.close()
    else:
        with front() as running:
            wire = running.connect()
            look_for_coordinators(wire)
            yield wire


def find(wire: Wire, key_type: int) -> Any:
    return done(wire.ask, FindCoordinatorRequest(key_type=key_type, coordinator_keys=["k"]), 4)


def look_for_coordinators(wire: Wire) -> None:
    find(wire, GROUP)
    find(wire, TRANSACTION)
    # Kafka's coordinator is there some time after its topic.
    done(wire.ask, InitProducerIdRequest(transactional_id="k", transaction_timeout_ms=60_000), 4)


def topics_of(wire: Wire) -> dict[str, tuple[int, bool]]:
    topics = wire.ask(MetadataRequest(topics=None), 9).topics
    return {topic.name: (len(topic.partitions), topic.is_internal) for topic in topics}


@pytest.mark.skipif(brokers.ON_KAFKA, reason="wants a broker of its own, which nobody has asked")
def test_they_are_made_when_a_coordinator_is_first_looked_for() -> None:
    with front() as running:
        wire = running.connect()
        assert topics_of(wire) == {}
        for key_type, topic in enumerate(TOPICS):
            [missing] = metadata(wire, topic, create=False).topics
            assert (missing.error_code, missing.is_internal) == (UNKNOWN, True)
            find(wire, key_type)
            assert topics_of(wire) == dict.fromkeys(TOPICS[: key_type + 1], (50, True))
        first = [topic.topic_id for topic in metadata(wire, *TOPICS).topics]
        find(wire, GROUP)
        assert [topic.topic_id for topic in metadata(wire, *TOPICS).topics] == first


def test_a_request_for_no_coordinator_makes_no_topic() -> None:
    """It needs no right, since it names nothing."""
    with front() as running:
        wire = running.connect()
        for key_type in range(len(TOPICS)):
            found = wire.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[]), 4)
            assert (found.error_code, found.coordinators) == (NONE, [])
        assert topics_of(wire) == {}


def test_a_metadata_that_names_one_makes_it_as_a_coordinator_does() -> None:
    with front(num_partitions=3) as running:
        topics = metadata(running.connect(), *TOPICS, "t").topics
        found = {topic.name: (len(topic.partitions), topic.is_internal) for topic in topics}
        assert found == {TOPICS[0]: (50, True), TOPICS[1]: (50, True), "t": (3, False)}


def test_a_full_broker_has_coordinators_all_the_same_and_others_lose_no_room() -> None:
    with front(max_partitions=2) as running:
        wire = running.connect()
        look_for_coordinators(wire)
        assert set(topics_of(wire)) == set(TOPICS)
        assert create(wire, num_partitions=3).error_code == ErrorCode.INVALID_PARTITIONS
        assert create(wire, num_partitions=2).error_code == NONE
        assert create(wire, name="u").error_code == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("topic", TOPICS)
def test_they_are_told_to_be_internal(wire: Wire, topic: str) -> None:
    assert topics_of(wire)[topic] == (50, True)
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)])
    [described] = wire.ask(request, 0).topics
    assert (described.error_code, described.is_internal, len(described.partitions)) == (NONE, True, 50)
    assert create(wire, name=topic).error_code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("topic", TOPICS)
def test_nobody_writes_into_them(wire: Wire, topic: str) -> None:
    assert produce(wire, batch(b"v"), topic).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert produce(wire, batch(b"v"), topic, 50).error_code == UNKNOWN
    [deleted] = delete_records(wire, -1, topic=topic)
    assert deleted == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    begun = done(wire.ask, InitProducerIdRequest(transactional_id="k", transaction_timeout_ms=60_000), 4)
    named = [(topic, [0]), ("nowhere", [0])]
    request = k24_add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="k",
        v3_and_below_producer_id=begun.producer_id,
        v3_and_below_producer_epoch=begun.producer_epoch,
        v3_and_below_topics=[
            k24_add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=each) for name, each in named
        ],
    )
    codes = {
        each.name: each.results_by_partition[0].partition_error_code
        for each in wire.ask(request, 3).results_by_topic_v3_and_below
    }
    assert codes == {topic: ErrorCode.TOPIC_AUTHORIZATION_FAILED, "nowhere": UNKNOWN}


@pytest.mark.parametrize("topic", TOPICS)
def test_a_reader_finds_partitions_without_records(wire: Wire, topic: str) -> None:
    """Apache Kafka has nothing in the partition that is asked for either."""
    asked = [ListOffsetsPartition(partition_index=49, timestamp=-1)]
    [ends] = wire.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=asked)]), 7).topics
    assert [(each.error_code, each.offset) for each in ends.partitions] == [(NONE, 0)]
    partition = k01_fetch.FetchPartition(partition=49, fetch_offset=0, partition_max_bytes=1 << 20)
    request = k01_fetch.FetchRequest(
        topics=[k01_fetch.FetchTopic(topic=topic, partitions=[partition])], max_wait_ms=0, max_bytes=1 << 20
    )
    [found] = wire.ask(request, 11).responses[0].partitions
    assert (found.error_code, found.high_watermark, values_in(found.records)) == (NONE, 0, [])


@pytest.mark.parametrize(
    ("topic", "own"),
    [
        (TOPICS[0], {"compression.type": "producer"}),
        (
            TOPICS[1],
            {"compression.type": "uncompressed", "min.insync.replicas": "1", "unclean.leader.election.enable": "false"},
        ),
    ],
)
def test_their_configurations_are_kafkas(wire: Wire, topic: str, own: dict[str, str]) -> None:
    resource = DescribeConfigsResource(resource_type=2, resource_name=topic)
    [described] = wire.ask(DescribeConfigsRequest(resources=[resource]), 4).results
    of_the_topic = 1
    found = {each.name: each.value for each in described.configs if each.config_source == of_the_topic}
    assert found == {"cleanup.policy": "compact", "segment.bytes": "104857600", **own}


def test_a_pattern_that_the_broker_resolves_finds_them(wire: Wire) -> None:
    """Clients leave internal topics out of what they match themselves; the broker does not (KIP-848)."""
    ids = {topic.topic_id: topic.name for topic in metadata(wire, *TOPICS).topics}
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[],
        subscribed_topic_regex="__(consumer|transaction)_.*",
        topic_partitions=[],
    )
    joined = done(wire.ask, request, 1)
    if joined.assignment is None or not joined.assignment.topic_partitions:  # Kafka resolves it later
        pytest.skip("this broker resolves patterns later")
    assert {ids[each.topic_id] for each in joined.assignment.topic_partitions} == set(TOPICS)


def test_groups_commit_offsets_in_them_partitions_are_added_and_they_can_be_deleted(wire: Wire) -> None:
    topic = TOPICS[1]  # on Kafka, groups would not outlive the other
    partition = k08_offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    named = k08_offset_commit.OffsetCommitRequestTopic(name=topic, partitions=[partition])
    done(wire.ask, k08_offset_commit.OffsetCommitRequest(group_id="k", topics=[named]), 8)
    more = CreatePartitionsTopic(name=topic, count=51)
    done(wire.ask, CreatePartitionsRequest(topics=[more], validate_only=True, timeout_ms=10_000), 3)
    gone = k20_delete_topics.DeleteTopicsRequest(
        topics=[k20_delete_topics.DeleteTopicState(name=topic)], timeout_ms=10_000
    )
    done(wire.ask, gone, 6)
    while topic in topics_of(wire):  # on Kafka the broker learns of it later
        pass
    find(wire, TRANSACTION)
    assert topics_of(wire)[topic] == (50, True)
