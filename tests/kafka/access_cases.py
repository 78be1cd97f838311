"""For every API: a request about resources that are named, and the code by which it is refused."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k03_metadata,
    k09_offset_fetch,
    k12_heartbeat,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k17_sasl_handshake,
    k18_api_versions,
    k22_init_producer_id,
    k29_describe_acls,
    k30_create_acls,
    k31_delete_acls,
    k35_describe_log_dirs,
    k36_sasl_authenticate,
    k42_delete_groups,
    k46_list_partition_reassignments,
    k48_describe_client_quotas,
    k49_alter_client_quotas,
    k50_describe_user_scram_credentials,
    k51_alter_user_scram_credentials,
    k60_describe_cluster,
    k65_describe_transactions,
    k66_list_transactions,
    k69_consumer_group_describe,
    k74_list_config_resources,
    k75_describe_topic_partitions,
    k17788_reset_subscription,
    k17789_abort_handles,
    k17790_join_transaction,
    k17793_move_lead,
)
from exacta.protocol.kafka.schema import Message
from exacta.readmodel.transactions import AskTransactions
from tests.kafka import access_requests as requests
from tests.kafka.access_requests import Names
from tests.kafka.asking import question

TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTIONAL_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class Case(Struct, frozen=True, kw_only=True):
    """A request for each version, and what a client is told that may do nothing; None: no error, but no names."""

    build: Callable[[int, Names], Message]
    code: ErrorCode | None


CASES: dict[ApiKey, Case] = {
    ApiKey.PRODUCE: Case(build=requests.produce, code=TOPIC),
    ApiKey.FETCH: Case(build=requests.fetch, code=TOPIC),
    ApiKey.LIST_OFFSETS: Case(build=requests.list_offsets, code=TOPIC),
    ApiKey.METADATA: Case(build=requests.metadata, code=TOPIC),
    ApiKey.OFFSET_COMMIT: Case(build=requests.offset_commit, code=GROUP),
    ApiKey.OFFSET_FETCH: Case(build=requests.offset_fetch, code=GROUP),
    ApiKey.FIND_COORDINATOR: Case(build=requests.find_coordinator, code=GROUP),
    ApiKey.JOIN_GROUP: Case(build=requests.join, code=GROUP),
    ApiKey.HEARTBEAT: Case(
        build=lambda version, names: k12_heartbeat.HeartbeatRequest(group_id=names.groups[0], member_id="m"),
        code=GROUP,
    ),
    ApiKey.LEAVE_GROUP: Case(build=requests.leave, code=GROUP),
    ApiKey.SYNC_GROUP: Case(
        build=lambda version, names: k14_sync_group.SyncGroupRequest(group_id=names.groups[0], member_id="m"),
        code=GROUP,
    ),
    ApiKey.DESCRIBE_GROUPS: Case(
        build=lambda version, names: k15_describe_groups.DescribeGroupsRequest(groups=list(names.groups)), code=GROUP
    ),
    ApiKey.LIST_GROUPS: Case(build=lambda version, names: k16_list_groups.ListGroupsRequest(), code=None),
    ApiKey.SASL_HANDSHAKE: Case(
        build=lambda version, names: k17_sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"),
        code=ErrorCode.ILLEGAL_SASL_STATE,
    ),
    ApiKey.SASL_AUTHENTICATE: Case(
        build=lambda version, names: k36_sasl_authenticate.SaslAuthenticateRequest(auth_bytes=b"token"),
        code=ErrorCode.ILLEGAL_SASL_STATE,
    ),
    ApiKey.API_VERSIONS: Case(
        build=lambda version, names: k18_api_versions.ApiVersionsRequest(
            client_software_name="x", client_software_version="1"
        ),
        code=None,
    ),
    ApiKey.CREATE_TOPICS: Case(build=requests.create_topics, code=TOPIC),
    ApiKey.DELETE_TOPICS: Case(build=requests.delete_topics, code=TOPIC),
    ApiKey.DELETE_RECORDS: Case(build=requests.delete_records, code=TOPIC),
    ApiKey.INIT_PRODUCER_ID: Case(
        build=lambda version, names: k22_init_producer_id.InitProducerIdRequest(
            transactional_id=names.transactional_ids[0],
            transaction_timeout_ms=1000,
            producer_id=-1,
            producer_epoch=-1,
        ),
        code=TRANSACTIONAL_ID,
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Case(build=requests.epochs, code=TOPIC),
    ApiKey.ADD_PARTITIONS_TO_TXN: Case(build=requests.add_partitions, code=TRANSACTIONAL_ID),
    ApiKey.ADD_OFFSETS_TO_TXN: Case(build=requests.add_offsets, code=TRANSACTIONAL_ID),
    ApiKey.END_TXN: Case(build=requests.end_txn, code=TRANSACTIONAL_ID),
    ApiKey.WRITE_TXN_MARKERS: Case(build=requests.markers, code=CLUSTER),
    ApiKey.TXN_OFFSET_COMMIT: Case(build=requests.txn_offset_commit, code=TRANSACTIONAL_ID),
    ApiKey.DESCRIBE_ACLS: Case(build=lambda version, names: k29_describe_acls.DescribeAclsRequest(), code=CLUSTER),
    ApiKey.CREATE_ACLS: Case(
        build=lambda version, names: k30_create_acls.CreateAclsRequest(creations=[k30_create_acls.AclCreation()] * 2),
        code=CLUSTER,
    ),
    ApiKey.DELETE_ACLS: Case(
        build=lambda version, names: k31_delete_acls.DeleteAclsRequest(filters=[k31_delete_acls.DeleteAclsFilter()]),
        code=CLUSTER,
    ),
    ApiKey.DESCRIBE_CONFIGS: Case(build=requests.describe_configs, code=TOPIC),
    ApiKey.ALTER_CONFIGS: Case(build=requests.alter_configs, code=TOPIC),
    ApiKey.DESCRIBE_LOG_DIRS: Case(
        build=lambda version, names: k35_describe_log_dirs.DescribeLogDirsRequest(topics=None), code=CLUSTER
    ),
    ApiKey.CREATE_PARTITIONS: Case(build=requests.create_partitions, code=TOPIC),
    ApiKey.DELETE_GROUPS: Case(
        build=lambda version, names: k42_delete_groups.DeleteGroupsRequest(groups_names=list(names.groups)), code=GROUP
    ),
    ApiKey.ELECT_LEADERS: Case(build=requests.elect, code=CLUSTER),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Case(build=requests.incremental, code=TOPIC),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Case(build=requests.reassign, code=CLUSTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Case(
        build=lambda version, names: k46_list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None),
        code=CLUSTER,
    ),
    ApiKey.OFFSET_DELETE: Case(build=requests.offset_delete, code=GROUP),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Case(
        build=lambda version, names: k48_describe_client_quotas.DescribeClientQuotasRequest(), code=CLUSTER
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: Case(
        build=lambda version, names: k49_alter_client_quotas.AlterClientQuotasRequest(
            entries=[
                k49_alter_client_quotas.EntryData(
                    entity=[k49_alter_client_quotas.EntityData(entity_type="user", entity_name="alice")],
                    ops=[k49_alter_client_quotas.OpData(key="producer_byte_rate", value=1_000_000.0)],
                )
            ]
        ),
        code=CLUSTER,
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Case(
        build=lambda version, names: k50_describe_user_scram_credentials.DescribeUserScramCredentialsRequest(),
        code=CLUSTER,
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Case(
        build=lambda version, names: k51_alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=[k51_alter_user_scram_credentials.ScramCredentialDeletion(name="alice", mechanism=1)],
            upsertions=[k51_alter_user_scram_credentials.ScramCredentialUpsertion(name="bob", mechanism=1)],
        ),
        code=CLUSTER,
    ),
    ApiKey.UPDATE_FEATURES: Case(build=requests.update_features, code=CLUSTER),
    ApiKey.DESCRIBE_CLUSTER: Case(
        build=lambda version, names: k60_describe_cluster.DescribeClusterRequest(
            include_cluster_authorized_operations=True
        ),
        code=None,
    ),
    ApiKey.DESCRIBE_PRODUCERS: Case(build=requests.describe_producers, code=TOPIC),
    ApiKey.DESCRIBE_TRANSACTIONS: Case(
        build=lambda version, names: k65_describe_transactions.DescribeTransactionsRequest(
            transactional_ids=list(names.transactional_ids)
        ),
        code=TRANSACTIONAL_ID,
    ),
    ApiKey.LIST_TRANSACTIONS: Case(
        build=lambda version, names: k66_list_transactions.ListTransactionsRequest(), code=None
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Case(build=requests.consumer_heartbeat, code=GROUP),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Case(
        build=lambda version, names: k69_consumer_group_describe.ConsumerGroupDescribeRequest(
            group_ids=list(names.groups)
        ),
        code=GROUP,
    ),
    ApiKey.LIST_CONFIG_RESOURCES: Case(
        build=lambda version, names: k74_list_config_resources.ListConfigResourcesRequest(), code=CLUSTER
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Case(build=requests.describe_topic_partitions, code=TOPIC),
    ApiKey.END_TRANSACTIONS: Case(build=requests.end_transactions, code=TRANSACTIONAL_ID),
    ApiKey.RESET_SUBSCRIPTION: Case(
        build=lambda version, names: k17788_reset_subscription.ResetSubscriptionRequest(
            subscription="s",
            topics=[
                k17788_reset_subscription.TopicReset(
                    name=topic, partitions=[k17788_reset_subscription.PartitionReset()]
                )
                for topic in names.topics
            ],
        ),
        code=GROUP,
    ),
    ApiKey.ABORT_HANDLES: Case(
        build=lambda version, names: k17789_abort_handles.AbortHandlesRequest(handles=[1]), code=CLUSTER
    ),
    ApiKey.JOIN_TRANSACTION: Case(
        build=lambda version, names: k17790_join_transaction.JoinTransactionRequest(
            transactional_id=names.transactional_ids[0]
        ),
        code=TRANSACTIONAL_ID,
    ),
    ApiKey.ACKNOWLEDGE_MESSAGES: Case(build=requests.acknowledge, code=TOPIC),
    ApiKey.ASK: Case(
        build=lambda version, names: question(AskTransactions(transactional_ids=tuple(names.transactional_ids))),
        code=TRANSACTIONAL_ID,
    ),
    ApiKey.MOVE_LEAD: Case(build=lambda version, names: k17793_move_lead.MoveLeadRequest(), code=CLUSTER),
}

LISTS: dict[ApiKey, Callable[[str], Any]] = {
    ApiKey.METADATA: lambda group: k03_metadata.MetadataRequest(topics=None),
    ApiKey.OFFSET_FETCH: lambda group: k09_offset_fetch.OffsetFetchRequest(
        groups=[k09_offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=None)]
    ),
    ApiKey.LIST_GROUPS: lambda group: k16_list_groups.ListGroupsRequest(),
    ApiKey.LIST_TRANSACTIONS: lambda group: k66_list_transactions.ListTransactionsRequest(),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda group: k75_describe_topic_partitions.DescribeTopicPartitionsRequest(),
    ApiKey.ASK: lambda group: question(AskTransactions()),
}
"""API -> a request whose answer names resources that it does not name; some need a group."""
