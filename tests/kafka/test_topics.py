"""Metadata, CreateTopics, DeleteTopics, CreatePartitions, DescribeCluster over the wire."""

from typing import Any

import pytest

from exacta.config.options import options
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from exacta.protocol.kafka.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from exacta.protocol.kafka.messages.k37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from exacta.protocol.kafka.messages.k60_describe_cluster import DescribeClusterRequest
from tests.kafka.wire import Front, Wire, batch, front, produce


def metadata(wire: Wire, *names: str, version: int = 12, create: bool = True) -> Any:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return wire.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=create), version)


def create(wire: Wire, version: int = 7, validate_only: bool = False, **topic: Any) -> Any:
    fields: dict[str, Any] = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    request = CreateTopicsRequest(topics=[CreatableTopic(**fields | topic)], validate_only=validate_only)
    return wire.ask(request, version).topics[0]


class TestMetadata:
    @pytest.mark.parametrize("version", range(14))
    def test_a_topic_about_to_be_created_is_in_the_first_answer(self, broker: Front, wire: Wire, version: int) -> None:
        response = metadata(wire, "new", version=version)
        [node] = response.brokers
        assert (node.host, node.port) == broker.address
        [topic] = response.topics
        assert (topic.error_code, topic.name, len(topic.partitions)) == (ErrorCode.NONE, "new", 1)
        assert topic.partitions[0].leader_id == node.node_id
        if version >= 7:
            assert topic.partitions[0].leader_epoch == 0

    @pytest.mark.parametrize("version", range(4, 14))
    def test_a_client_may_forbid_creation(self, wire: Wire, version: int) -> None:
        [topic] = metadata(wire, "new", version=version, create=False).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_the_broker_may_forbid_creation(self) -> None:
        with front(auto_create_topics_enable=False) as broker:
            [topic] = metadata(broker.connect(), "new").topics
            assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_num_partitions_counts(self) -> None:
        with front(num_partitions=3) as broker:
            [topic] = metadata(broker.connect(), "new").topics
            assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]

    def test_an_impossible_name_is_refused(self, wire: Wire) -> None:
        good, bad = metadata(wire, "good", "b a d").topics
        assert (good.error_code, bad.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION)

    def test_all_topics_and_none(self, wire: Wire) -> None:
        metadata(wire, "a", "b")
        assert [topic.name for topic in wire.ask(MetadataRequest(topics=None), 9).topics] == ["a", "b"]
        assert wire.ask(MetadataRequest(topics=[]), 9).topics == []
        assert len(wire.ask(MetadataRequest(topics=[]), 0).topics) == 2

    def test_by_topic_id(self, wire: Wire) -> None:
        topic_id = metadata(wire, "a").topics[0].topic_id
        asked = [MetadataRequestTopic(topic_id=each, name=None) for each in (topic_id, b"\7" * 16)]
        known, unknown = wire.ask(MetadataRequest(topics=asked), 12).topics
        assert (known.name, known.error_code) == ("a", ErrorCode.NONE)
        assert (unknown.topic_id, unknown.error_code) == (b"\7" * 16, ErrorCode.UNKNOWN_TOPIC_ID)
        for version in (10, 11):  # whose answers have no null names
            asked = [MetadataRequestTopic(topic_id=b"\7" * 16, name="")]
            [unknown] = wire.ask(MetadataRequest(topics=asked), version).topics
            assert (unknown.name, unknown.error_code) == ("", ErrorCode.UNKNOWN_TOPIC_ID)

    def test_as_many_partitions_as_the_configuration_allows(self, wire: Wire) -> None:
        most = options()["num.partitions"].highest
        assert most is not None
        assert create(wire, name="most", num_partitions=most).error_code == ErrorCode.NONE
        refused = create(wire, name="more", num_partitions=most + 1)
        assert (refused.error_code, refused.error_message) == (
            ErrorCode.INVALID_PARTITIONS,
            "partitions: 1 to 10000 in a topic, 100000 in all",
        )


class TestCreateTopics:
    @pytest.mark.parametrize("version", range(2, 8))
    def test_every_version(self, wire: Wire, version: int) -> None:
        result = create(wire, version, num_partitions=4)
        assert result.error_code == ErrorCode.NONE
        [topic] = metadata(wire, "t", create=False).topics
        assert len(topic.partitions) == 4
        if version == 7:
            assert result.topic_id == topic.topic_id
            assert (result.num_partitions, result.replication_factor) == (4, 1)

    def test_defaults(self) -> None:
        with front(num_partitions=5) as broker:
            assert create(broker.connect(), num_partitions=-1, replication_factor=-1).num_partitions == 5

    def test_validate_only_creates_nothing(self, wire: Wire) -> None:
        assert create(wire, validate_only=True).error_code == ErrorCode.NONE
        assert metadata(wire, "t", create=False).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @pytest.mark.parametrize(
        ("topic", "code"),
        [
            ({"name": "no/slash"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
            ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
            ({"replication_factor": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
            ({"configs": [CreatableTopicConfig(name="no.such", value="1")]}, ErrorCode.INVALID_CONFIG),
            ({"configs": [CreatableTopicConfig(name="retention.ms", value="long")]}, ErrorCode.INVALID_CONFIG),
            ({"assignments": [CreatableReplicaAssignment(broker_ids=[0])]}, ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_what_cannot_be_is_refused_with_a_reason(self, wire: Wire, topic: dict[str, Any], code: ErrorCode) -> None:
        result = create(wire, **topic)
        assert result.error_code == code
        assert result.error_message
        assert wire.ask(MetadataRequest(topics=None), 9).topics == []

    def test_an_unknown_configuration_is_named(self, wire: Wire) -> None:
        result = create(wire, configs=[CreatableTopicConfig(name="no.such", value="1")])
        assert "no.such" in result.error_message

    def test_twice(self, wire: Wire) -> None:
        create(wire)
        assert create(wire).error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        topic = CreatableTopic(name="double", num_partitions=1, replication_factor=1)
        results = wire.ask(CreateTopicsRequest(topics=[topic, topic]), 7).topics
        assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2

    def test_assignments_to_this_broker(self, wire: Wire) -> None:
        def assigned(*brokers: int) -> Any:
            assignments = [
                CreatableReplicaAssignment(partition_index=index, broker_ids=[each])
                for index, each in enumerate(brokers)
            ]
            return create(wire, num_partitions=-1, replication_factor=-1, assignments=assignments)

        assert assigned(0, 1).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert assigned(0, 0).num_partitions == 2


class TestDeleteTopics:
    @pytest.mark.parametrize("version", range(1, 6))
    def test_by_name(self, wire: Wire, version: int) -> None:
        create(wire)
        results = wire.ask(DeleteTopicsRequest(topic_names=["t", "unknown"]), version).responses
        assert [(result.name, result.error_code) for result in results] == [
            ("t", ErrorCode.NONE),
            ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        assert wire.ask(MetadataRequest(topics=None), 9).topics == []

    def test_by_id(self, wire: Wire) -> None:
        topic_id = create(wire).topic_id
        asked = [DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=b"\1" * 16), DeleteTopicState(name="u")]
        results = wire.ask(DeleteTopicsRequest(topics=asked), 6).responses
        assert [(result.name, result.error_code) for result in results] == [
            ("t", ErrorCode.NONE),
            (None, ErrorCode.UNKNOWN_TOPIC_ID),
            ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]

    def test_a_topic_is_named_in_one_way(self, wire: Wire) -> None:
        topic_id = create(wire).topic_id
        asked = [DeleteTopicState(), DeleteTopicState(name="t", topic_id=topic_id)]
        results = wire.ask(DeleteTopicsRequest(topics=asked), 6).responses
        assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}
        assert [topic.name for topic in wire.ask(MetadataRequest(topics=None), 9).topics] == ["t"]


class TestCreatePartitions:
    def grow(
        self,
        wire: Wire,
        count: int,
        *assigned: list[int],
        name: str = "t",
        version: int = 3,
        validate_only: bool = False,
        twice: bool = False,
    ) -> list[ErrorCode]:
        assignments = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assigned] or None
        topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
        request = CreatePartitionsRequest(topics=[topic] * (1 + twice), validate_only=validate_only)
        results = wire.ask(request, version).results
        assert all(result.name == name for result in results)
        assert all(bool(result.error_message) == bool(result.error_code) for result in results)
        return [result.error_code for result in results]

    def partitions(self, wire: Wire) -> list[int]:
        [topic] = metadata(wire, "t", create=False).topics
        return [partition.partition_index for partition in topic.partitions]

    @pytest.mark.parametrize("version", range(4))
    def test_a_topic_grows(self, wire: Wire, version: int) -> None:
        create(wire)
        assert self.grow(wire, 3, validate_only=True, version=version) == [ErrorCode.NONE]
        assert self.partitions(wire) == [0]
        assert self.grow(wire, 2, version=version) == [ErrorCode.NONE]
        assert self.grow(wire, 4, [0], [0], version=version) == [ErrorCode.NONE]
        assert self.partitions(wire) == [0, 1, 2, 3]

    def test_what_cannot_be(self, wire: Wire) -> None:
        create(wire, num_partitions=2)
        for count in (-1, 0, 1, 2, 10_001):
            assert self.grow(wire, count) == [ErrorCode.INVALID_PARTITIONS]
        assert self.grow(wire, 2, [1]) == [ErrorCode.INVALID_PARTITIONS]
        for assigned in ([[0]], [[0], [1]], [[0], []], [[0, 0], [0]], [[0], [0], [0]]):
            assert self.grow(wire, 4, *assigned) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
        assert self.grow(wire, 4, name="nowhere") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert self.grow(wire, 4, twice=True) == [ErrorCode.INVALID_REQUEST] * 2
        assert self.partitions(wire) == [0, 1]

    def test_a_new_partition_is_written_and_read_and_survives(self) -> None:
        with front() as broker:
            wire = broker.connect()
            create(wire)
            create(wire, name="u")
            self.grow(wire, 3)
            assert produce(wire, batch(b"v"), partition=2).error_code == ErrorCode.NONE
            storage = broker.storage
        with front(storage=storage) as again:
            wire = again.connect()
            assert self.partitions(wire) == [0, 1, 2]
            assert produce(wire, batch(b"w"), partition=2).base_offset == 1
            assert produce(wire, batch(b"w"), partition=3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestDescribeCluster:
    @pytest.mark.parametrize("version", range(3))
    def test_one_broker(self, broker: Front, wire: Wire, version: int) -> None:
        response = wire.ask(DescribeClusterRequest(), version)
        assert (response.cluster_id, response.controller_id) == ("a-cluster", 0)
        [node] = response.brokers
        assert (node.host, node.port) == broker.address

    def test_no_controllers(self, wire: Wire) -> None:
        assert wire.ask(DescribeClusterRequest(endpoint_type=2), 1).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
