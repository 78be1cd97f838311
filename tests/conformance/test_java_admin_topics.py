"""Kafka's own admin client for Java: topics, their configurations, their records, and the node they are on."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.brokers import ON_KAFKA
from tests.conformance.clients.interface import TopicPartition
from tests.conformance.scenario import Scenario, wait_until

if not os.environ.get("EXACTA_TEST_JAVA"):
    pytest.skip("set EXACTA_TEST_JAVA to run Kafka's client for Java", allow_module_level=True)

from jpype import JClass

from tests.conformance.clients.java import Admin, JavaClient

client = pytest.fixture(lambda: JavaClient(), name="client")
"""What is asked of the admin client does not depend on who produces."""


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    made = Admin(bootstrap)
    yield made
    made.close()


class Configs:
    """A resource's configurations."""

    def __init__(self, admin: Admin, kind: str, name: str) -> None:
        self._admin = admin
        config = admin.java.common.config
        self.resource = config.ConfigResource(getattr(config.ConfigResource.Type, kind), name)

    def change(self, *changes: tuple[str, str, str | None], validate_only: bool = False) -> str:
        """Set, delete, append, subtract; return "done" or the name of the exception."""
        java = self._admin.java.clients.admin
        operations = [
            java.AlterConfigOp(java.ConfigEntry(name, value), getattr(java.AlterConfigOp.OpType, operation))
            for operation, name, value in changes
        ]
        options = java.AlterConfigsOptions().validateOnly(validate_only)
        result = self._admin.ask("incrementalAlterConfigs", {self.resource: operations}, options)
        return self._admin.outcome(result.values().get(self.resource))

    def get(self, name: str) -> tuple[str, str]:
        """Return a value and its source."""
        found = self._admin.ask("describeConfigs", [self.resource]).values().get(self.resource).get().get(name)
        return str(found.value()), str(found.source())

    def becomes(self, name: str, value: str, source: str) -> None:
        """Wait until a change is seen: Apache Kafka's brokers hear of it a moment after it was acknowledged."""
        wait_until(lambda: self.get(name) == (value, source), f"{name} to become {value}")


def test_configurations_of_a_topic(scenario: Scenario, admin: Admin) -> None:
    configs = Configs(admin, "TOPIC", scenario.topic())
    assert configs.change(("SET", "max.message.bytes", "12345")) == "done"
    configs.becomes("max.message.bytes", "12345", "DYNAMIC_TOPIC_CONFIG")
    assert configs.change(("APPEND", "cleanup.policy", "compact"), ("DELETE", "max.message.bytes", None)) == "done"
    configs.becomes("cleanup.policy", "delete,compact", "DYNAMIC_TOPIC_CONFIG")
    configs.becomes("max.message.bytes", "1048588", "DEFAULT_CONFIG")
    assert configs.change(("SUBTRACT", "cleanup.policy", "delete")) == "done"
    configs.becomes("cleanup.policy", "compact", "DYNAMIC_TOPIC_CONFIG")
    assert configs.change(("SET", "retention.ms", "7"), validate_only=True) == "done"
    for changes, refused in [
        ([("SET", "no.such", "1")], "InvalidConfigurationException"),
        ([("SET", "retention.ms", "soon")], "InvalidConfigurationException"),
        ([("APPEND", "retention.ms", "1")], "InvalidConfigurationException"),
        ([("SET", "segment.ms", "7"), ("SET", "retention.ms", "-2")], "InvalidConfigurationException"),
        ([("SET", "segment.ms", "7"), ("SET", "segment.ms", "8")], "InvalidRequestException"),
    ]:
        assert configs.change(*changes) == refused
    assert configs.get("retention.ms")[1] == configs.get("segment.ms")[1] == "DEFAULT_CONFIG"
    nowhere = Configs(admin, "TOPIC", scenario.new_name("topic"))
    assert nowhere.change(("SET", "retention.ms", "1")) == "UnknownTopicOrPartitionException"


def test_what_is_configured_beside_topics(scenario: Scenario, admin: Admin) -> None:
    node = Configs(admin, "BROKER", str(admin.node))
    assert node.get("num.partitions") == ("1", "DEFAULT_CONFIG")
    assert node.change(("SET", "num.partitions", "5")) == "InvalidRequestException"
    assert node.change(("DELETE", "num.partitions", None)) == "done"
    every = Configs(admin, "BROKER", "")
    assert every.change(("SET", "message.max.bytes", "1100000")) == "done"
    node.becomes("message.max.bytes", "1100000", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    assert every.get("message.max.bytes") == ("1100000", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    assert node.change(("SET", "message.max.bytes", "1200000")) == "done"
    node.becomes("message.max.bytes", "1200000", "DYNAMIC_BROKER_CONFIG")
    assert node.change(("SET", "message.max.bytes", "soon")) == "InvalidRequestException"
    assert node.change(("APPEND", "message.max.bytes", "1")) == "InvalidConfigurationException"
    for each in (node, every):
        assert each.change(("DELETE", "message.max.bytes", None)) == "done"
    node.becomes("message.max.bytes", "1048588", "DEFAULT_CONFIG")
    topic = scenario.topic()
    listed = {(str(each.type()), str(each.name())) for each in admin.ask("listConfigResources").all().get()}
    assert {("TOPIC", topic), ("BROKER", str(admin.node))} <= listed


def test_a_topic_grows(scenario: Scenario, admin: Admin) -> None:
    topic = scenario.topic()
    new = admin.java.clients.admin.NewPartitions

    def grown(total: int, *assigned: list[int]) -> str:
        lists = [[JClass("java.lang.Integer")(each) for each in brokers] for brokers in assigned]
        wanted = new.increaseTo(total, admin.converted(lists)) if assigned else new.increaseTo(total)
        return admin.outcome(admin.ask("createPartitions", {topic: wanted}).values().get(topic))

    def count() -> int:
        return len(admin.ask("describeTopics", [topic]).allTopicNames().get().get(topic).partitions())

    assert grown(3) == grown(4, [admin.node]) == "done"
    wait_until(lambda: count() == 4, "four partitions")
    assert grown(4) == grown(2) == "InvalidPartitionsException"
    assert grown(6, [admin.node]) == grown(5, [77]) == "InvalidReplicaAssignmentException"
    for index in range(4):
        scenario.fill(TopicPartition(topic, index), [b"v%d" % index])
        assert scenario.read(TopicPartition(topic, index)) == [b"v%d" % index]


def test_records_are_deleted(scenario: Scenario, admin: Admin) -> None:
    partition = scenario.partition()
    for number in range(4):
        scenario.fill(partition, [b"v%d" % number])
    name = admin.partition(partition)

    def deleted(before: int) -> Any:
        wanted = admin.java.clients.admin.RecordsToDelete.beforeOffset(before)
        return admin.ask("deleteRecords", {partition: wanted}).lowWatermarks().get(name)

    def offset(spec: str) -> int:
        wanted = getattr(admin.java.clients.admin.OffsetSpec, spec)()
        return int(admin.ask("listOffsets", {partition: wanted}).partitionResult(name).get().offset())

    assert deleted(2).get().lowWatermark() == 2
    assert [offset(spec) for spec in ("earliest", "earliestLocal", "latest")] == [2, 2, 4]
    assert admin.outcome(deleted(5)) == "OffsetOutOfRangeException"
    assert deleted(-1).get().lowWatermark() == 4
    assert offset("earliest") == 4
    scenario.fill(partition, [b"after"])
    consumer = scenario.consumer()
    consumer.assign({partition: 0})  # below: its reset policy lets it begin where the log does
    read: list[bytes | None] = []

    def arrived() -> bool:
        read.extend(record.value for record in consumer.poll(0.1))
        return bool(read)

    wait_until(arrived, "the record that was not deleted")
    assert read == [b"after"]


def test_offsets_of_every_kind(scenario: Scenario, admin: Admin) -> None:
    partition = scenario.partition()
    producer = scenario.producer()
    for timestamp_ms in (1_000_000, 3_000_000, 2_000_000):
        producer.send(partition.topic, b"v", partition=0, timestamp_ms=timestamp_ms)
        producer.flush()
    spec = admin.java.clients.admin.OffsetSpec

    def found(wanted: Any) -> tuple[int, int]:
        result = admin.ask("listOffsets", {partition: wanted}).partitionResult(admin.partition(partition)).get()
        return int(result.offset()), int(result.timestamp())

    assert found(spec.earliest()) == found(spec.earliestLocal()) == (0, -1)
    assert found(spec.latest()) == (3, -1)
    assert found(spec.maxTimestamp()) == (1, 3_000_000)
    assert found(spec.latestTiered()) == found(spec.earliestPendingUpload()) == (-1, -1)
    assert found(spec.forTimestamp(1_500_000)) == (1, 3_000_000)
    assert found(spec.forTimestamp(4_000_000)) == (-1, -1)


def test_topics_are_described_page_by_page(scenario: Scenario, admin: Admin) -> None:
    topics = [scenario.topic(partitions=3) for _ in range(3)]
    options = admin.java.clients.admin.DescribeTopicsOptions().partitionSizeLimitPerResponse(2)
    options.includeAuthorizedOperations(True)
    described = admin.ask("describeTopics", topics, options).allTopicNames().get()
    assert [len(described.get(topic).partitions()) for topic in topics] == [3, 3, 3]
    assert len(described.get(topics[0]).authorizedOperations()) == 8
    names = admin.ask("listTopics").names().get()
    assert all(names.contains(topic) for topic in topics)


def test_the_node_and_its_folder(scenario: Scenario, admin: Admin) -> None:
    partition = scenario.partition()
    scenario.fill(partition, [b"v" * 100])
    number = JClass("java.lang.Integer")(admin.node)
    folders = admin.ask("describeLogDirs", [number]).allDescriptions().get().get(number)
    [folder] = folders.values()
    assert folder.error() is None
    assert int(folder.replicaInfos().get(admin.partition(partition)).size()) > 100
    if ON_KAFKA:  # the broker under test has no folder
        assert folder.totalBytes().isPresent()


def test_leaders_and_places_are_what_they_are(scenario: Scenario, admin: Admin) -> None:
    partition, nowhere = scenario.partition(), TopicPartition(scenario.new_name("topic"))
    election = admin.java.common.ElectionType.PREFERRED
    elected = admin.ask("electLeaders", election, {partition, nowhere}).partitions().get()
    named = {
        each: str(elected.get(admin.partition(each)).get().getClass().getSimpleName()) for each in (partition, nowhere)
    }
    assert named == {partition: "ElectionNotNeededException", nowhere: "UnknownTopicOrPartitionException"}

    def moved(*brokers: int) -> str:
        optional = JClass("java.util.Optional")
        ids = admin.converted([JClass("java.lang.Integer")(each) for each in brokers])
        place = optional.of(admin.java.clients.admin.NewPartitionReassignment(ids)) if brokers else optional.empty()
        result = admin.ask("alterPartitionReassignments", {partition: place})
        return admin.outcome(result.values().get(admin.partition(partition)))

    assert moved(admin.node) == "done"
    assert moved(77) == "InvalidReplicaAssignmentException"
    assert moved() == "NoReassignmentInProgressException"
    assert admin.ask("listPartitionReassignments").reassignments().get().size() == 0


def test_who_may_do_what_and_how_much(admin: Admin) -> None:
    common = admin.java.common
    assert admin.outcome(admin.ask("describeAcls", common.acl.AclBindingFilter.ANY).values()) == (
        "SecurityDisabledException"
    )
    assert admin.outcome(admin.ask("deleteAcls", [common.acl.AclBindingFilter.ANY]).all()) == (
        "SecurityDisabledException"
    )
    pattern = common.resource.ResourcePattern(
        common.resource.ResourceType.TOPIC, "t", common.resource.PatternType.LITERAL
    )
    entry = common.acl.AccessControlEntry(
        "User:a", "*", common.acl.AclOperation.READ, common.acl.AclPermissionType.ALLOW
    )
    rule = common.acl.AclBinding(pattern, entry)
    assert admin.outcome(admin.ask("createAcls", [rule]).all()) == "SecurityDisabledException"
    assert admin.ask("describeClientQuotas", common.quota.ClientQuotaFilter.all()).entities().get().size() == 0
    assert admin.ask("describeUserScramCredentials").all().get().size() == 0
    named = admin.ask("describeUserScramCredentials", ["a"])
    assert admin.outcome(named.description("a")) == "ResourceNotFoundException"


def test_features_are_what_they_are(admin: Admin) -> None:
    name = "transaction.version"
    features = admin.ask("describeFeatures").featureMetadata().get().finalizedFeatures()
    level = int(features.get(name).maxVersionLevel())
    java = admin.java.clients.admin

    def updated(feature: str, to: int) -> str:
        update = java.FeatureUpdate(to, java.FeatureUpdate.UpgradeType.UPGRADE)
        result = admin.ask("updateFeatures", {feature: update}, java.UpdateFeaturesOptions())
        return admin.outcome(result.all())

    assert updated(name, level) == "done"
    assert updated(name, 7) == updated("no.such", 1) == "InvalidUpdateVersionException"
