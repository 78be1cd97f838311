"""The largest requests that the limits allow, by API: each holds up as much of the broker as one request can."""

from collections.abc import Callable
from typing import NamedTuple

from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages import (
    k10_find_coordinator,
    k11_join_group,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k20_delete_topics,
    k22_init_producer_id,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k35_describe_log_dirs,
    k37_create_partitions,
    k42_delete_groups,
    k43_elect_leaders,
    k45_alter_partition_reassignments,
    k46_list_partition_reassignments,
    k48_describe_client_quotas,
    k50_describe_user_scram_credentials,
    k57_update_features,
    k65_describe_transactions,
    k66_list_transactions,
    k69_consumer_group_describe,
    k74_list_config_resources,
    k75_describe_topic_partitions,
    k17789_abort_handles,
)
from exacta.protocol.kafka.schema import Message
from exacta.readmodel.groups import AskLag
from exacta.readmodel.subscriptions import AskSubscriptions
from exacta.readmodel.transactions import AskTransactions
from tests.attacks import requests
from tests.attacks.requests import COMPACTED, ID, MB, TOPIC, ZSTD, names
from tests.kafka.asking import question

TOPICS = 40_000
MANY = 100_000


class Attack(NamedTuple):
    """One request; `asks` says what it asks for, and `is_one_step` that it is decided or answered in one step."""

    asks: str
    request: Callable[[], Message]
    version: int
    is_one_step: bool = False

    @property
    def key(self) -> int:
        """Return the API's number."""
        return int(self.request().SCHEMA.key)


TRIVIAL: dict[ApiKey, str] = {
    ApiKey.HEARTBEAT: "names one member",
    ApiKey.SASL_HANDSHAKE: "names one mechanism",
    ApiKey.SASL_AUTHENTICATE: "carries one message of at most sasl.server.max.receive.size before the login",
    ApiKey.API_VERSIONS: "names nothing, and its answer has a line for each API",
    ApiKey.DESCRIBE_CLUSTER: "names nothing, and there is one broker",
    ApiKey.JOIN_TRANSACTION: "names one transactional id",
    ApiKey.MOVE_LEAD: "names one epoch and one broker",
}
"""The APIs whose largest request is no more work than any other, with the reasons."""


def attacks(topics: int = TOPICS, many: int = MANY, few: int = 10_000, megabytes: int = 40) -> list[Attack]:
    """Return the requests in their order, since some make what others ask for; `megabytes` are produced."""
    r = requests
    return [
        Attack(f"Metadata that creates {topics:,} topics", lambda: r.metadata(names(topics), create=True), 12),
        Attack("Metadata of all topics", lambda: r.metadata(None), 12),
        Attack(f"Metadata of {many:,} unknown names", lambda: r.metadata(names(many, "unknown")), 12),
        *_of_records(topics, megabytes),
        *_of_offsets(topics, many),
        *_of_groups(topics, many),
        *_of_transactions(topics, many),
        *_of_topics(many, few),
        *_of_settings(many, few),
        *_of_others(topics, many, few),
    ]


def _of_records(topics: int, megabytes: int) -> list[Attack]:
    r, keyed = requests, 12_250 * megabytes
    return [
        Attack(f"Fetch of {topics:,} partitions without records", lambda: r.fetch(topics), 11),
        Attack(
            f"Produce of {megabytes} MB for zstd 22",
            lambda: r.produce(ZSTD, r.records([r.long_record(megabytes * MB)])),
            9,
        ),
        Attack(f"Produce of {keyed:,} keyed records", lambda: r.produce(COMPACTED, r.keyed(keyed)), 9),
        Attack(f"Produce to {topics:,} partitions", lambda: r.produce_to(topics), 9),
        Attack(f"Fetch of {topics:,} partitions with records", lambda: r.fetch(topics), 11),
        Attack(
            "Fetch of 20,000 partitions that begins a session",
            lambda: r.fetch(min(topics, 20_000), 0),
            11,
            is_one_step=True,
        ),
    ]


def _of_offsets(topics: int, many: int) -> list[Attack]:
    r = requests
    return [
        Attack(f"ListOffsets of {topics:,} partitions", lambda: r.list_offsets(topics), 7),
        Attack(f"ListOffsets of {topics:,} partitions by time", lambda: r.list_offsets(topics, 0), 7),
        Attack(f"OffsetForLeaderEpoch of {many:,} partitions", lambda: r.epochs(many), 4),
        Attack("OffsetCommit of 15,000 partitions", lambda: r.commit(min(topics, 15_000)), 8, is_one_step=True),
        Attack(f"OffsetCommit of {topics:,} partitions", lambda: r.commit(topics), 8, is_one_step=topics <= 15_000),
        Attack("OffsetFetch of all of a large group", lambda: r.fetch_offsets(["large"], None), 8),
        Attack(f"OffsetFetch of {many:,} names", lambda: r.fetch_offsets(["large"], many), 8),
        Attack(f"OffsetFetch of {many:,} groups", lambda: r.fetch_offsets(names(many, "g"), None), 8),
        Attack("Ask for the lag of a large group", lambda: question(AskLag(group="large")), 0),
        Attack(f"OffsetDelete of {topics:,} partitions", lambda: r.delete_offsets(topics), 0),
    ]


def _of_groups(topics: int, many: int) -> list[Attack]:
    r = requests
    protocol = k11_join_group.JoinGroupRequestProtocol
    assignment = k14_sync_group.SyncGroupRequestAssignment
    return [
        Attack(
            f"FindCoordinator of {many:,} groups",
            lambda: k10_find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=names(many, "group")),
            4,
        ),
        Attack(
            f"JoinGroup with {many:,} protocols",
            lambda: k11_join_group.JoinGroupRequest(
                group_id="classic",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[protocol(name=each, metadata=b"") for each in names(many)],
            ),
            3,
        ),
        Attack(
            "JoinGroup with 4 MB of metadata",
            lambda: k11_join_group.JoinGroupRequest(
                group_id="classic",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[protocol(name="range", metadata=bytes(4 * MB - 1_000))],
            ),
            3,
        ),
        Attack(
            f"SyncGroup of {many:,} members",
            lambda: k14_sync_group.SyncGroupRequest(
                group_id="classic",
                generation_id=1,
                member_id="m",
                assignments=[assignment(member_id=each, assignment=b"") for each in names(many)],
            ),
            3,
        ),
        *_of_many_groups(many),
        Attack("ListGroups", k16_list_groups.ListGroupsRequest, 4),
        Attack("ConsumerGroupHeartbeat with the pattern .*", r.join_by_pattern, 1, is_one_step=True),
    ]


def _of_many_groups(many: int) -> list[Attack]:
    member = k13_leave_group.MemberIdentity
    return [
        Attack(
            f"LeaveGroup of {many:,} members",
            lambda: k13_leave_group.LeaveGroupRequest(
                group_id="classic", members=[member(member_id=each) for each in names(many)]
            ),
            4,
        ),
        Attack(
            f"DescribeGroups of {many:,} invented groups",
            lambda: k15_describe_groups.DescribeGroupsRequest(groups=names(many, "group")),
            5,
        ),
        Attack(
            f"ConsumerGroupDescribe of {many:,} invented groups",
            lambda: k69_consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=names(many, "group")),
            1,
        ),
        Attack(
            f"DeleteGroups of {many:,} groups",
            lambda: k42_delete_groups.DeleteGroupsRequest(groups_names=names(many, "group")),
            2,
        ),
    ]


def _of_transactions(topics: int, many: int) -> list[Attack]:
    r = requests
    return [
        Attack(
            "InitProducerId",
            lambda: k22_init_producer_id.InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000),
            3,
        ),
        Attack(f"AddPartitionsToTxn of {topics:,} partitions", lambda: r.add_partitions(topics), 3, is_one_step=True),
        Attack(
            "AddOffsetsToTxn",
            lambda: k25_add_offsets_to_txn.AddOffsetsToTxnRequest(
                transactional_id=ID, producer_id=0, producer_epoch=0, group_id="in-transactions"
            ),
            3,
        ),
        Attack(
            "TxnOffsetCommit of 15,000 partitions",
            lambda: r.commit_in_transaction(min(topics, 15_000)),
            3,
            is_one_step=True,
        ),
        Attack(
            f"EndTxn of {topics:,} partitions",
            lambda: k26_end_txn.EndTxnRequest(transactional_id=ID, producer_id=0, producer_epoch=0, committed=True),
            3,
            is_one_step=True,
        ),
        Attack(f"WriteTxnMarkers of {many:,} markers", lambda: r.write_markers(many), 1),
        Attack("ListTransactions", k66_list_transactions.ListTransactionsRequest, 1),
        Attack(
            f"DescribeTransactions of {many:,} ids",
            lambda: k65_describe_transactions.DescribeTransactionsRequest(transactional_ids=names(many, "id")),
            0,
        ),
        Attack(
            "Ask for transactions by 40,000 ids",
            lambda: question(AskTransactions(transactional_ids=tuple(names(min(many, 40_000), "id")))),
            0,
        ),
        Attack(f"EndTransactions of {many:,} ids", lambda: r.end_transactions(many), 0, is_one_step=True),
        Attack(
            f"AbortHandles of {many:,} handles",
            lambda: k17789_abort_handles.AbortHandlesRequest(handles=list(range(many))),
            0,
        ),
        Attack(f"AcknowledgeMessages of {many:,} partitions", lambda: r.acknowledge(many), 0),
    ]


def _of_topics(many: int, few: int) -> list[Attack]:
    r = requests
    grown = k37_create_partitions.CreatePartitionsTopic
    return [
        Attack(f"CreateTopics of {few:,} topics", lambda: r.topics_to_create(few, 1), 7),
        Attack(f"CreateTopics of {many:,} topics", lambda: r.topics_to_create(many, 1), 7),
        Attack(
            f"CreatePartitions of {few:,} topics",
            lambda: k37_create_partitions.CreatePartitionsRequest(
                topics=[grown(name=each, count=2) for each in names(few, "new")], timeout_ms=1_000
            ),
            3,
        ),
        Attack(
            f"DeleteTopics of {few:,} topics",
            lambda: k20_delete_topics.DeleteTopicsRequest(
                topics=[k20_delete_topics.DeleteTopicState(name=each) for each in names(few, "new")]
            ),
            6,
        ),
        Attack("CreateTopics of 10 times 5,000 partitions", lambda: r.topics_to_create(10, 5_000), 7),
        Attack(f"DeleteRecords of {many:,} partitions", lambda: r.delete_records(many), 2),
        Attack("DescribeLogDirs of all", lambda: k35_describe_log_dirs.DescribeLogDirsRequest(topics=None), 4),
        Attack(
            "DescribeTopicPartitions",
            lambda: k75_describe_topic_partitions.DescribeTopicPartitionsRequest(response_partition_limit=2_000),
            0,
        ),
        Attack(f"DescribeProducers of {many:,} partitions", lambda: r.describe_producers(many), 0),
    ]


def _of_settings(many: int, few: int) -> list[Attack]:
    r = requests
    return [
        Attack("ListConfigResources", k74_list_config_resources.ListConfigResourcesRequest, 1),
        Attack(f"DescribeConfigs of {few // 2:,} topics", lambda: r.describe_configs(few // 2), 4),
        Attack(f"AlterConfigs of {few:,} topics", lambda: r.alter_in_full(few), 2),
        Attack(f"IncrementalAlterConfigs of {few:,} topics", lambda: r.alter(few), 1),
        Attack(
            f"UpdateFeatures of {many:,} features",
            lambda: k57_update_features.UpdateFeaturesRequest(
                feature_updates=[
                    k57_update_features.FeatureUpdateKey(feature=each, max_version_level=1, upgrade_type=1)
                    for each in names(many, "feature")
                ]
            ),
            1,
        ),
        Attack(
            f"DescribeClientQuotas by {many:,} components",
            lambda: k48_describe_client_quotas.DescribeClientQuotasRequest(
                components=[k48_describe_client_quotas.ComponentData(entity_type=each) for each in names(many, "type")]
            ),
            1,
        ),
        Attack(
            f"DescribeUserScramCredentials of {many:,} users",
            lambda: k50_describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
                users=[k50_describe_user_scram_credentials.UserName(name=each) for each in names(many, "user")]
            ),
            0,
        ),
        Attack("AlterClientQuotas of 1,000 users", lambda: r.set_quotas(1_000), 1, is_one_step=True),
        Attack("AlterUserScramCredentials of 1,000 users", lambda: r.set_keys(1_000), 0, is_one_step=True),
        Attack(f"CreateAcls of {many:,} rules", lambda: r.create_acls(many), 3),
        Attack("DescribeAcls of all rules", r.describe_acls, 3),
        Attack("DeleteAcls by 1,000 filters", lambda: r.delete_acls(1_000), 3),
    ]


def _of_others(topics: int, many: int, few: int) -> list[Attack]:
    r = requests
    election, reassigned = k43_elect_leaders, k45_alter_partition_reassignments
    listed = k46_list_partition_reassignments
    return [
        Attack(
            f"ElectLeaders of {many:,} partitions",
            lambda: election.ElectLeadersRequest(
                topic_partitions=[election.TopicPartitions(topic=TOPIC, partitions=list(range(many)))]
            ),
            2,
        ),
        Attack(
            f"AlterPartitionReassignments of {many:,} partitions",
            lambda: reassigned.AlterPartitionReassignmentsRequest(
                topics=[
                    reassigned.ReassignableTopic(
                        name=TOPIC,
                        partitions=[
                            reassigned.ReassignablePartition(partition_index=each, replicas=[0]) for each in range(many)
                        ],
                    )
                ]
            ),
            0,
        ),
        Attack(
            f"ListPartitionReassignments of {many:,} partitions",
            lambda: listed.ListPartitionReassignmentsRequest(
                topics=[listed.ListPartitionReassignmentsTopics(name=TOPIC, partition_indexes=list(range(many)))]
            ),
            0,
        ),
        Attack("Ask for subscriptions of all topics", lambda: question(AskSubscriptions()), 0, is_one_step=True),
        Attack(
            f"Ask for subscriptions of {few:,} topics",
            lambda: question(AskSubscriptions(topics=tuple(names(few)))),
            0,
            is_one_step=True,
        ),
        Attack(f"ResetSubscription of {topics:,} partitions", lambda: r.reset(topics), 0),
    ]
