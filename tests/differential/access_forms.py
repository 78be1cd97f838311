"""For every API the requests that users with different rights send: those of `tests/kafka/access_cases.py`, and more.

A form is a function of version and names, as there; None: the version cannot say it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages import (
    k00_produce,
    k01_fetch,
    k03_metadata,
    k09_offset_fetch,
    k10_find_coordinator,
    k15_describe_groups,
    k18_api_versions,
    k20_delete_topics,
    k22_init_producer_id,
    k29_describe_acls,
    k30_create_acls,
    k31_delete_acls,
    k32_describe_configs,
    k33_alter_configs,
    k35_describe_log_dirs,
    k43_elect_leaders,
    k44_incremental_alter_configs,
    k46_list_partition_reassignments,
    k50_describe_user_scram_credentials,
    k51_alter_user_scram_credentials,
    k60_describe_cluster,
    k66_list_transactions,
    k68_consumer_group_heartbeat,
    k69_consumer_group_describe,
    k75_describe_topic_partitions,
)
from exacta.protocol.kafka.schema import Message
from tests.kafka import access_requests as requests
from tests.kafka.access_cases import CASES
from tests.kafka.access_requests import Names
from tests.kafka.wire import batch

Form: TypeAlias = Callable[[int, Names], Message | None]
FORMS: dict[ApiKey, dict[str, Form]] = {key: {"usual": case.build} for key, case in CASES.items()}

GROUP, LOGGER, BROKER, METRICS, ANY_TYPE = 32, 8, 4, 16, 99
"""The types of resources that have configurations, as the requests number them; the last one is none."""
TRANSACTION, SHARE, NO_COORDINATOR = 1, 2, 9
_USUAL_MS = {"timeout_ms": 10_000}
"""Kafka answers REQUEST_TIMED_OUT where a request gives it no time, and carries it out all the same."""


def form(key: ApiKey, name: str, since: int = 0, until: int = 99) -> Callable[[Form], Form]:
    """Add a form to those of an API, for these versions; "usual" takes the place of the one that is there."""

    def add(build: Form) -> Form:
        FORMS[key][name] = lambda version, names: build(version, names) if since <= version <= until else None
        return build

    return add


def request(key: ApiKey, name: str, version: int, names: Names) -> Message | None:
    """Return the request of this form; None: the version has none."""
    made = FORMS[key][name](version, names)
    if made is None:
        return None
    return msgspec.structs.replace(made, **{field: ms for field, ms in _USUAL_MS.items() if hasattr(made, field)})


def usual(key: ApiKey, version: int, names: Names, **fields: Any) -> Message:
    """Return the request of the table with other values in some fields."""
    return msgspec.structs.replace(CASES[key].build(version, names), **fields)


def changed(key: ApiKey, name: str, since: int = 0, until: int = 99, **fields: Any) -> None:
    """Add the form that has other values in some fields of the usual request."""
    form(key, name, since, until)(lambda version, names: usual(key, version, names, **fields))


# --- records ----------------------------------------------------------------------------------------------------------


@form(ApiKey.PRODUCE, "in a transaction")
def _produce(version: int, names: Names) -> Message:
    producer_id, producer_epoch = names.producer(names.transactional_ids[0])
    made = requests.produce(version, names)
    assert isinstance(made, k00_produce.ProduceRequest)
    records = batch(b"x", producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=0, transactional=True)
    for topic in made.topic_data:
        topic.partition_data[0].records = records
    return msgspec.structs.replace(made, transactional_id=names.transactional_ids[0])


changed(ApiKey.FETCH, "as a replica", until=14, replica_id=1)
changed(
    ApiKey.FETCH,
    "as a replica with an epoch",
    since=15,
    replica_state=k01_fetch.ReplicaState(replica_id=1, replica_epoch=1),
)
changed(ApiKey.OFFSET_FOR_LEADER_EPOCH, "as a replica", since=3, replica_id=1)

# --- what is there ----------------------------------------------------------------------------------------------------


changed(ApiKey.METADATA, "usual", since=4, allow_auto_topic_creation=False)


@form(ApiKey.METADATA, "making topics", since=4)
def _making_topics(version: int, names: Names) -> Message:
    return requests.metadata(version, names)


@form(ApiKey.METADATA, "of all topics", since=1)
def _all_topics(version: int, names: Names) -> Message:
    return k03_metadata.MetadataRequest(topics=None, include_topic_authorized_operations=version >= 8)


@form(ApiKey.METADATA, "of the cluster", since=8, until=10)
def _of_the_cluster(version: int, names: Names) -> Message:
    return k03_metadata.MetadataRequest(topics=[], include_cluster_authorized_operations=True)


@form(ApiKey.METADATA, "by ids", since=12)
def _by_ids(version: int, names: Names) -> Message:
    topics = [k03_metadata.MetadataRequestTopic(topic_id=names.topic_id(each), name=None) for each in names.topics]
    return k03_metadata.MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )


@form(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "all")
def _partitions_of_all(version: int, names: Names) -> Message:
    return k75_describe_topic_partitions.DescribeTopicPartitionsRequest()


@form(ApiKey.DESCRIBE_CLUSTER, "without operations")
def _cluster(version: int, names: Names) -> Message:
    return k60_describe_cluster.DescribeClusterRequest()


changed(ApiKey.DESCRIBE_CLUSTER, "the controllers", since=1, endpoint_type=2)
changed(ApiKey.DESCRIBE_CLUSTER, "fenced brokers", since=2, include_fenced_brokers=True)


@form(ApiKey.DESCRIBE_LOG_DIRS, "of topics")
def _log_dirs(version: int, names: Names) -> Message:
    topics = [k35_describe_log_dirs.DescribableLogDirTopic(topic=each, partitions=[0]) for each in names.topics]
    return k35_describe_log_dirs.DescribeLogDirsRequest(topics=topics)


@form(ApiKey.LIST_PARTITION_REASSIGNMENTS, "of topics")
def _reassignments(version: int, names: Names) -> Message:
    topics = [
        k46_list_partition_reassignments.ListPartitionReassignmentsTopics(name=each, partition_indexes=[0])
        for each in names.topics
    ]
    return k46_list_partition_reassignments.ListPartitionReassignmentsRequest(topics=topics)


@form(ApiKey.ELECT_LEADERS, "of all partitions")
def _elect(version: int, names: Names) -> Message:
    return k43_elect_leaders.ElectLeadersRequest(topic_partitions=None)


# The connections of this client are not closed in order to wake it up (`lost_coordinators.py`).
changed(ApiKey.API_VERSIONS, "usual", client_software_name="apache-kafka-java")


@form(ApiKey.API_VERSIONS, "of a client with a strange name", since=3)
def _versions(version: int, names: Names) -> Message:
    return k18_api_versions.ApiVersionsRequest(client_software_name="x y", client_software_version="1")


# --- topics and configurations ----------------------------------------------------------------------------------------


changed(ApiKey.CREATE_TOPICS, "as a rehearsal", validate_only=True)


@form(ApiKey.CREATE_TOPICS, "that may be there")
def _that_may_be_there(version: int, names: Names) -> Message:
    made = CASES[ApiKey.CREATE_TOPICS].build(version, names)
    for topic, name in zip(made.topics, names.topics, strict=True):  # type: ignore[attr-defined]
        topic.name = name
    return made


@form(ApiKey.DELETE_TOPICS, "by ids", since=6)
def _delete_by_ids(version: int, names: Names) -> Message:
    topics = [k20_delete_topics.DeleteTopicState(topic_id=names.topic_id(each)) for each in names.topics]
    return k20_delete_topics.DeleteTopicsRequest(topics=topics)


changed(ApiKey.CREATE_PARTITIONS, "as a rehearsal", validate_only=True)


def _config_resources(names: Names) -> dict[str, list[tuple[int, str]]]:
    return {
        "of the broker": [(BROKER, "1"), (BROKER, "")],
        "of loggers": [(LOGGER, "1")],
        "of groups": [(GROUP, each) for each in names.groups],
        "of client metrics": [(METRICS, "some")],
        "of nothing": [(ANY_TYPE, "x")],
    }


def _add_configs(what: str) -> None:
    @form(ApiKey.DESCRIBE_CONFIGS, what)
    def _describe(version: int, names: Names) -> Message:
        resources = [
            k32_describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name)
            for kind, name in _config_resources(names)[what]
        ]
        return k32_describe_configs.DescribeConfigsRequest(resources=resources)

    @form(ApiKey.ALTER_CONFIGS, what)
    def _alter(version: int, names: Names) -> Message:
        resources = [
            k33_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
            for kind, name in _config_resources(names)[what]
            if name  # Apache Kafka has an option for all brokers that must not be taken away, and Exacta has none
        ]
        return k33_alter_configs.AlterConfigsRequest(resources=resources, validate_only=True)

    @form(ApiKey.INCREMENTAL_ALTER_CONFIGS, what)
    def _incremental(version: int, names: Names) -> Message:
        resources = [
            k44_incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
            for kind, name in _config_resources(names)[what]
        ]
        return k44_incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources, validate_only=True)


for _what in _config_resources(Names(topics=[], groups=[], transactional_ids=[])):
    _add_configs(_what)


# --- groups -----------------------------------------------------------------------------------------------------------


@form(ApiKey.OFFSET_FETCH, "of all topics", since=2)
def _all_offsets(version: int, names: Names) -> Message:
    if version < 8:
        return k09_offset_fetch.OffsetFetchRequest(group_id=names.groups[0], topics=None)
    groups = [k09_offset_fetch.OffsetFetchRequestGroup(group_id=each, topics=None) for each in names.groups]
    return k09_offset_fetch.OffsetFetchRequest(groups=groups)


def _add_coordinators(what: str, kind: int) -> None:
    @form(ApiKey.FIND_COORDINATOR, what, since=1)
    def _find(version: int, names: Names) -> Message:
        keys = list(names.transactional_ids)
        if version < 4:
            return k10_find_coordinator.FindCoordinatorRequest(key=keys[0], key_type=kind)
        return k10_find_coordinator.FindCoordinatorRequest(coordinator_keys=keys, key_type=kind)


for _what, _kind in (("of transactions", TRANSACTION), ("of nothing", NO_COORDINATOR)):
    _add_coordinators(_what, _kind)


@form(ApiKey.DESCRIBE_GROUPS, "with operations", since=3)
def _groups(version: int, names: Names) -> Message:
    return k15_describe_groups.DescribeGroupsRequest(groups=list(names.groups), include_authorized_operations=True)


@form(ApiKey.CONSUMER_GROUP_DESCRIBE, "with operations")
def _consumer_groups(version: int, names: Names) -> Message:
    return k69_consumer_group_describe.ConsumerGroupDescribeRequest(
        group_ids=list(names.groups), include_authorized_operations=True
    )


changed(ApiKey.CONSUMER_GROUP_HEARTBEAT, "without topics", since=1, subscribed_topic_names=[])


@form(ApiKey.CONSUMER_GROUP_HEARTBEAT, "of one topic", since=1)
def _of_one_topic(version: int, names: Names) -> Message:
    return usual(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, names, subscribed_topic_names=[names.topics[0]])


@form(ApiKey.CONSUMER_GROUP_HEARTBEAT, "by a pattern", since=1)
def _by_a_pattern(version: int, names: Names) -> Message:
    return usual(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        version,
        names,
        subscribed_topic_names=None,
        subscribed_topic_regex=f"({'|'.join(names.topics)})",
    )


@form(ApiKey.CONSUMER_GROUP_HEARTBEAT, "of a member that goes on")
def _goes_on(version: int, names: Names) -> Message:
    return k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=names.groups[0], member_id="m", member_epoch=3
    )


changed(ApiKey.SYNC_GROUP, "usual", protocol_type="consumer", protocol_name="range")
# --- transactions -----------------------------------------------------------------------------------------------------


changed(ApiKey.INIT_PRODUCER_ID, "without transactions", transactional_id=None)


@form(ApiKey.INIT_PRODUCER_ID, "without a time-out", since=6)
def _two_phase(version: int, names: Names) -> Message:
    made = usual(ApiKey.INIT_PRODUCER_ID, version, names, enable_2pc=True)
    assert isinstance(made, k22_init_producer_id.InitProducerIdRequest)
    return made


@form(ApiKey.LIST_TRANSACTIONS, "by a pattern", since=2)
def _transactions(version: int, names: Names) -> Message:
    return k66_list_transactions.ListTransactionsRequest(transactional_id_pattern=f"{names.transactional_ids[0]}.*")


# --- rules and users --------------------------------------------------------------------------------------------------

_TOPIC, _LITERAL, _ANY, _ALLOW, _READ = 2, 3, 1, 3, 3
_NOBODY = "User:nobody"


@form(ApiKey.DESCRIBE_ACLS, "usual")
def _describe_acls(version: int, names: Names) -> Message:
    return k29_describe_acls.DescribeAclsRequest(
        resource_type_filter=_TOPIC,
        resource_name_filter=None,
        pattern_type_filter=_LITERAL,
        principal_filter=_NOBODY,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


@form(ApiKey.CREATE_ACLS, "usual")
def _create_acls(version: int, names: Names) -> Message:
    creations = [
        k30_create_acls.AclCreation(
            resource_type=_TOPIC,
            resource_name=each,
            principal=_NOBODY,
            host="*",
            operation=_READ,
            permission_type=_ALLOW,
        )
        for each in names.topics
    ]
    return k30_create_acls.CreateAclsRequest(creations=creations)


@form(ApiKey.DELETE_ACLS, "usual")
def _delete_acls(version: int, names: Names) -> Message:
    wanted = k31_delete_acls.DeleteAclsFilter(
        resource_type_filter=_TOPIC,
        resource_name_filter=names.topics[0],
        pattern_type_filter=_LITERAL,
        principal_filter=_NOBODY,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )
    return k31_delete_acls.DeleteAclsRequest(filters=[wanted])


@form(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "of one user")
def _one_user(version: int, names: Names) -> Message:
    users = [k50_describe_user_scram_credentials.UserName(name="nobody")]
    return k50_describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=users)


@form(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "that can be")
def _alter_users(version: int, names: Names) -> Message:
    upsertion = k51_alter_user_scram_credentials.ScramCredentialUpsertion(
        name="somebody", mechanism=1, iterations=4096, salt=b"a salt of a test", salted_password=bytes(32)
    )
    return k51_alter_user_scram_credentials.AlterUserScramCredentialsRequest(upsertions=[upsertion])
