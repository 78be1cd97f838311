"""What tools ask of a cluster, answered by one node without logins, access rules and quotas."""

from typing import Any

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k03_metadata,
    k29_describe_acls,
    k30_create_acls,
    k31_delete_acls,
    k35_describe_log_dirs,
    k43_elect_leaders,
    k45_alter_partition_reassignments,
    k46_list_partition_reassignments,
    k48_describe_client_quotas,
    k50_describe_user_scram_credentials,
    k57_update_features,
    k60_describe_cluster,
)
from tests.kafka.test_deleting_records import delete
from tests.kafka.test_topics import create
from tests.kafka.wire import Wire, batch, front, produce

NONE = ErrorCode.NONE


@pytest.mark.parametrize("version", range(1, 4))
def test_there_are_no_access_rules(wire: Wire, version: int) -> None:
    described = wire.ask(k29_describe_acls.DescribeAclsRequest(), version)
    assert (described.error_code, bool(described.error_message)) == (ErrorCode.SECURITY_DISABLED, True)
    creations = [k30_create_acls.AclCreation(resource_type=2, resource_name="t")] * 2
    created = wire.ask(k30_create_acls.CreateAclsRequest(creations=creations), version).results
    assert [result.error_code for result in created] == [ErrorCode.SECURITY_DISABLED] * 2
    filters = [k31_delete_acls.DeleteAclsFilter()] * 3
    deleted = wire.ask(k31_delete_acls.DeleteAclsRequest(filters=filters), version).filter_results
    assert [result.error_code for result in deleted] == [ErrorCode.SECURITY_DISABLED] * 3


class TestDescribeLogDirs:
    def sizes(self, wire: Wire, topics: Any, version: int = 4) -> tuple[dict[tuple[str, int], int], Any]:
        response = wire.ask(k35_describe_log_dirs.DescribeLogDirsRequest(topics=topics), version)
        [folder] = response.results
        assert (response.error_code, folder.error_code) == (NONE, NONE)
        found = {
            (topic.name, partition.partition_index): partition.partition_size
            for topic in folder.topics
            for partition in topic.partitions
        }
        return found, folder

    @pytest.mark.parametrize("version", range(1, 6))
    def test_bytes_of_partitions(self, wire: Wire, version: int) -> None:
        create(wire, num_partitions=2)
        create(wire, name="u")
        records = batch(b"a", b"b")
        for _ in range(3):
            produce(wire, records)
        found, folder = self.sizes(wire, None, version)
        assert found == {("t", 0): 3 * len(records), ("t", 1): 0, ("u", 0): 0}
        assert (folder.log_dir, folder.total_bytes, folder.usable_bytes) == ("memory", -1, -1)
        wanted = [
            k35_describe_log_dirs.DescribableLogDirTopic(topic=name, partitions=[0, 0, 7]) for name in ("t", "nowhere")
        ]
        assert self.sizes(wire, wanted, version)[0] == {("t", 0): 3 * len(records)}
        assert self.sizes(wire, [], version)[0] == {}
        delete(wire, 3)
        assert self.sizes(wire, wanted, version)[0] == {("t", 0): 2 * len(records)}, "whole batches only"


class TestElectLeaders:
    def elected(self, wire: Wire, partitions: Any, kind: int = 0, version: int = 2) -> tuple[int, Any]:
        request = k43_elect_leaders.ElectLeadersRequest(election_type=kind, topic_partitions=partitions)
        response = wire.ask(request, version)
        found = {
            (each.topic, result.partition_id): result.error_code
            for each in response.replica_election_results
            for result in each.partition_result
        }
        return response.error_code, found

    @pytest.mark.parametrize(("version", "kind"), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)])
    def test_every_partition_has_its_leader(self, wire: Wire, version: int, kind: int) -> None:
        create(wire)
        wanted = [k43_elect_leaders.TopicPartitions(topic=name, partitions=[0, 7]) for name in ("t", "nowhere")]
        assert self.elected(wire, wanted, kind, version) == (
            NONE,
            {
                ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
                ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("nowhere", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            },
        )
        assert self.elected(wire, None, kind, version) == self.elected(wire, [], kind, version) == (NONE, {})

    def test_an_unknown_election(self, wire: Wire) -> None:
        create(wire)
        wanted = [k43_elect_leaders.TopicPartitions(topic="t", partitions=[0])]
        assert self.elected(wire, wanted, 7) == (ErrorCode.INVALID_REQUEST, {("t", 0): ErrorCode.INVALID_REQUEST})


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("topic", "index", "replicas", "code"),
    [
        ("t", 0, [0], NONE),
        ("t", 0, [1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [0, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [0, 0], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 7, [0], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 7, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nowhere", 0, [0], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_partitions_are_where_they_can_be(
    wire: Wire, topic: str, index: int, replicas: list[int] | None, code: ErrorCode, version: int
) -> None:
    create(wire)
    partition = k45_alter_partition_reassignments.ReassignablePartition(partition_index=index, replicas=replicas)
    asked = k45_alter_partition_reassignments.ReassignableTopic(name=topic, partitions=[partition])
    response = wire.ask(k45_alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=[asked]), version)
    [[result]] = [each.partitions for each in response.responses]
    assert (response.error_code, result.partition_index, result.error_code) == (NONE, index, code)
    listed = wire.ask(k46_list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None), 0)
    assert (listed.error_code, listed.topics) == (NONE, [])


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([], NONE),
        ([("user", 0, "a")], NONE),
        ([("user", 1, None), ("client-id", 2, None)], NONE),
        ([("ip", 2, None)], NONE),
        ([("ip", 2, None), ("user", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 9, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("user", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("planet", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_nobody_has_a_quota(wire: Wire, components: Any, code: ErrorCode, version: int) -> None:
    asked = [
        k48_describe_client_quotas.ComponentData(entity_type=kind, match_type=how, match=name)
        for kind, how, name in components
    ]
    response = wire.ask(k48_describe_client_quotas.DescribeClientQuotasRequest(components=asked), version)
    assert (response.error_code, response.entries) == (code, [] if code == NONE else None)


def test_nobody_has_credentials(wire: Wire) -> None:
    def described(*names: str) -> list[tuple[str, int]]:
        users = [k50_describe_user_scram_credentials.UserName(name=name) for name in names]
        request = k50_describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=users or None)
        response = wire.ask(request, 0)
        assert response.error_code == NONE
        return [(each.user, each.error_code) for each in response.results]

    assert described() == []
    assert described("a", "b", "a") == [("a", ErrorCode.DUPLICATE_RESOURCE), ("b", ErrorCode.RESOURCE_NOT_FOUND)]


class TestUpdateFeatures:
    def updated(self, wire: Wire, *updates: tuple[str, int, int], version: int = 2) -> tuple[int, list[Any]]:
        keys = [
            k57_update_features.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ]
        response = wire.ask(k57_update_features.UpdateFeaturesRequest(feature_updates=keys), version)
        return response.error_code, [(each.feature, each.error_code) for each in response.results]

    @pytest.mark.parametrize("version", range(3))
    def test_what_is_so_already_is_granted(self, wire: Wire, version: int) -> None:
        done = self.updated(wire, ("transaction.version", 2, 1), version=version)
        assert done == (NONE, [("transaction.version", NONE)] if version < 2 else [])
        assert self.updated(wire, ("group.version", 1, 1), version=version)[0] == NONE
        assert self.updated(wire, version=version) == (NONE, [])

    @pytest.mark.parametrize(
        ("name", "level", "kind"),
        [
            ("transaction.version", 1, 1),
            ("transaction.version", 1, 2),
            ("transaction.version", 3, 1),
            ("transaction.version", -1, 1),
            ("transaction.version", 2, 9),
            ("metadata.version", 1, 1),
        ],
    )
    def test_levels_are_fixed(self, wire: Wire, name: str, level: int, kind: int) -> None:
        good = ("transaction.version", 2, 1)
        assert self.updated(wire, good, (name, level, kind)) == (ErrorCode.INVALID_UPDATE_VERSION, [])

    def test_the_level_is_the_brokers_option(self) -> None:
        with front(transaction_version=1) as broker:
            wire = broker.connect()
            assert self.updated(wire, ("transaction.version", 1, 1))[0] == NONE
            assert self.updated(wire, ("transaction.version", 2, 1))[0] == ErrorCode.INVALID_UPDATE_VERSION


def test_everybody_may_do_everything(wire: Wire) -> None:
    """Of topics and the cluster, in the numbers that an Apache Kafka without an authorizer gives."""
    create(wire)
    topics = [k03_metadata.MetadataRequestTopic(name="t")]
    for asked, of_cluster, of_topic in [(True, 8096, 3576), (False, -(2**31), -(2**31))]:
        request = k03_metadata.MetadataRequest(
            topics=topics, include_cluster_authorized_operations=asked, include_topic_authorized_operations=asked
        )
        response = wire.ask(request, 10)
        assert response.cluster_authorized_operations == of_cluster
        assert response.topics[0].topic_authorized_operations == of_topic
        cluster = k60_describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=asked)
        assert wire.ask(cluster, 2).cluster_authorized_operations == of_cluster
