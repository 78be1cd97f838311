"""Name, for the user's administrator, the permission that is missing when a broker says *_AUTHORIZATION_FAILED.

This module owns the table of what each request needs (Kafka's documentation, "Authorization primitives"), for the
requests that this client sends.
"""

from types import SimpleNamespace
from typing import Any

from msgspec import json

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import ProduceRequest
from exacta.protocol.kafka.messages.k01_fetch import FetchRequest
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsRequest
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from exacta.protocol.kafka.messages.k08_offset_commit import OffsetCommitRequest
from exacta.protocol.kafka.messages.k09_offset_fetch import OffsetFetchRequest
from exacta.protocol.kafka.messages.k10_find_coordinator import FindCoordinatorRequest
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest
from exacta.protocol.kafka.messages.k13_leave_group import LeaveGroupRequest
from exacta.protocol.kafka.messages.k15_describe_groups import DescribeGroupsRequest
from exacta.protocol.kafka.messages.k16_list_groups import ListGroupsRequest
from exacta.protocol.kafka.messages.k19_create_topics import CreateTopicsRequest
from exacta.protocol.kafka.messages.k20_delete_topics import DeleteTopicsRequest
from exacta.protocol.kafka.messages.k21_delete_records import DeleteRecordsRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest
from exacta.protocol.kafka.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from exacta.protocol.kafka.messages.k27_write_txn_markers import WriteTxnMarkersRequest
from exacta.protocol.kafka.messages.k28_txn_offset_commit import TxnOffsetCommitRequest
from exacta.protocol.kafka.messages.k29_describe_acls import DescribeAclsRequest
from exacta.protocol.kafka.messages.k30_create_acls import CreateAclsRequest
from exacta.protocol.kafka.messages.k31_delete_acls import DeleteAclsRequest
from exacta.protocol.kafka.messages.k32_describe_configs import DescribeConfigsRequest
from exacta.protocol.kafka.messages.k37_create_partitions import CreatePartitionsRequest
from exacta.protocol.kafka.messages.k42_delete_groups import DeleteGroupsRequest
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from exacta.protocol.kafka.messages.k48_describe_client_quotas import DescribeClientQuotasRequest
from exacta.protocol.kafka.messages.k49_alter_client_quotas import AlterClientQuotasRequest
from exacta.protocol.kafka.messages.k50_describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from exacta.protocol.kafka.messages.k51_alter_user_scram_credentials import AlterUserScramCredentialsRequest
from exacta.protocol.kafka.messages.k61_describe_producers import DescribeProducersRequest
from exacta.protocol.kafka.messages.k65_describe_transactions import DescribeTransactionsRequest
from exacta.protocol.kafka.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from exacta.protocol.kafka.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from exacta.protocol.kafka.messages.k17784_end_transactions import EndTransactionsRequest
from exacta.protocol.kafka.messages.k17788_reset_subscription import ResetSubscriptionRequest
from exacta.protocol.kafka.messages.k17789_abort_handles import AbortHandlesRequest
from exacta.protocol.kafka.messages.k17790_join_transaction import JoinTransactionRequest
from exacta.protocol.kafka.messages.k17791_acknowledge_messages import AcknowledgeMessagesRequest
from exacta.protocol.kafka.messages.k17792_ask import AskRequest
from exacta.protocol.kafka.messages.k17793_move_lead import MoveLeadRequest
from exacta.protocol.kafka.schema import Message

_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_TRANSACTIONAL_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

_RESOURCES = {
    _TOPIC: "topic",
    _GROUP: "group",
    _CLUSTER: "the cluster",
    _TRANSACTIONAL_ID: "transactional id",
}

_OPERATIONS: dict[tuple[type[Message], int], str] = {
    (ProduceRequest, _TOPIC): "Write",
    (ProduceRequest, _TRANSACTIONAL_ID): "Write",
    (FetchRequest, _TOPIC): "Read",
    (ListOffsetsRequest, _TOPIC): "Describe",
    (MetadataRequest, _TOPIC): "Describe",
    (OffsetCommitRequest, _GROUP): "Read",
    (OffsetCommitRequest, _TOPIC): "Read",
    (OffsetFetchRequest, _GROUP): "Describe",
    (OffsetFetchRequest, _TOPIC): "Describe",
    (FindCoordinatorRequest, _GROUP): "Describe",
    (FindCoordinatorRequest, _TRANSACTIONAL_ID): "Describe",
    (JoinGroupRequest, _GROUP): "Read",
    (LeaveGroupRequest, _GROUP): "Read",
    (ListGroupsRequest, _CLUSTER): "Describe",
    (CreateTopicsRequest, _TOPIC): "Create",
    (CreateTopicsRequest, _CLUSTER): "Create",
    (InitProducerIdRequest, _TRANSACTIONAL_ID): "Write",
    (InitProducerIdRequest, _CLUSTER): "IdempotentWrite",
    (AddPartitionsToTxnRequest, _TRANSACTIONAL_ID): "Write",
    (AddPartitionsToTxnRequest, _TOPIC): "Write",
    (AddOffsetsToTxnRequest, _TRANSACTIONAL_ID): "Write",
    (AddOffsetsToTxnRequest, _GROUP): "Read",
    (WriteTxnMarkersRequest, _CLUSTER): "ClusterAction",
    (TxnOffsetCommitRequest, _TRANSACTIONAL_ID): "Write",
    (TxnOffsetCommitRequest, _GROUP): "Read",
    (TxnOffsetCommitRequest, _TOPIC): "Read",
    (EndTxnRequest, _TRANSACTIONAL_ID): "Write",
    (EndTransactionsRequest, _TRANSACTIONAL_ID): "Write",
    (DescribeConfigsRequest, _CLUSTER): "DescribeConfigs",
    (DescribeConfigsRequest, _TOPIC): "DescribeConfigs",
    (DescribeConfigsRequest, _GROUP): "DescribeConfigs",
    (IncrementalAlterConfigsRequest, _TOPIC): "AlterConfigs",
    (IncrementalAlterConfigsRequest, _CLUSTER): "AlterConfigs",
    (IncrementalAlterConfigsRequest, _GROUP): "AlterConfigs",
    (DescribeAclsRequest, _CLUSTER): "Describe",
    (CreateAclsRequest, _CLUSTER): "Alter",
    (DeleteAclsRequest, _CLUSTER): "Alter",
    (DescribeClientQuotasRequest, _CLUSTER): "DescribeConfigs",
    (AlterClientQuotasRequest, _CLUSTER): "AlterConfigs",
    (DescribeUserScramCredentialsRequest, _CLUSTER): "Describe",
    (AlterUserScramCredentialsRequest, _CLUSTER): "Alter",
    (DeleteTopicsRequest, _TOPIC): "Delete",
    (DeleteRecordsRequest, _TOPIC): "Delete",
    (CreatePartitionsRequest, _TOPIC): "Alter",
    (DescribeGroupsRequest, _GROUP): "Describe",
    (ConsumerGroupHeartbeatRequest, _GROUP): "Read",
    (ConsumerGroupHeartbeatRequest, _TOPIC): "Describe",
    (ConsumerGroupDescribeRequest, _GROUP): "Describe",
    (ConsumerGroupDescribeRequest, _TOPIC): "Describe",
    (DescribeProducersRequest, _TOPIC): "Read",
    (DeleteGroupsRequest, _GROUP): "Delete",
    (DescribeTransactionsRequest, _TRANSACTIONAL_ID): "Describe",
    (ResetSubscriptionRequest, _TOPIC): "Read",
    (ResetSubscriptionRequest, _GROUP): "Read",
    (AbortHandlesRequest, _CLUSTER): "Alter",
    (JoinTransactionRequest, _TRANSACTIONAL_ID): "Write",
    (AcknowledgeMessagesRequest, _TOPIC): "Read",
    (AcknowledgeMessagesRequest, _GROUP): "Read",
    (AcknowledgeMessagesRequest, _TRANSACTIONAL_ID): "Write",
    (AskRequest, _TRANSACTIONAL_ID): "Describe",
    (AskRequest, _GROUP): "Describe",
    (AskRequest, _TOPIC): "Describe",
    (AskRequest, _CLUSTER): "Describe",
    (MoveLeadRequest, _CLUSTER): "Alter",
}
"""The operation by request and code. `tests/client/test_permissions.py` holds it against what the broker asks about."""

_NAMES = {
    _TOPIC: ("topics", "topic_data", "v3_and_below_topics", "topic_names", "subscribed_topic_names"),
    _GROUP: (
        *("group_id", "groups", "group_ids", "groups_names", "group", "key"),
        *("subscription", "subscriptions", "names"),  # a subscription is a group of its name
    ),
    _TRANSACTIONAL_ID: (
        *("transactional_id", "v3_and_below_transactional_id", "transactional_ids", "transactions", "key"),
    ),
}
"""The fields of requests that name resources: a name, or a list of names or of what has one."""
_NAME_IN = ("name", "topic", "transactional_id", "resource_name")
_CONFIG_RESOURCES = {2: _TOPIC, 32: _GROUP}
"""The kinds of resources whose configurations are asked for or altered, by Kafka's numbers."""


def missing_permission(request: Message, code: int, principal: str) -> str | None:
    """Return what `principal` lacks where `code` refuses `request`, or a part of it, for that, else None."""
    try:
        resource = _RESOURCES[ErrorCode(code)]
    except (KeyError, ValueError):
        return None
    operation = _OPERATIONS.get((type(request), code), "the operation")
    if getattr(request, "enable_2pc", False):
        operation = "Write, and TwoPhaseCommit,"
    elif isinstance(request, MetadataRequest) and request.allow_auto_topic_creation:
        operation = "Describe, and Create if it does not exist,"
    elif isinstance(request, InitProducerIdRequest) and code == _CLUSTER:
        operation = "Write on any topic, or IdempotentWrite"  # KIP-679
    shown = ", ".join(f"'{name}'" for name in _named_in(request, code))
    if isinstance(request, AcknowledgeMessagesRequest) and code == _TOPIC:  # its topics have no names there
        resource, shown = "each topic of subscription", ", ".join(f"'{each.name}'" for each in request.subscriptions)
    return f"{principal} needs the permission {operation} on {resource}{f' {shown}' if shown else ''}"


def _named_in(request: Any, code: int) -> list[str]:
    """Return the names of the resources of that kind in a request."""
    if isinstance(request, AskRequest):
        request = SimpleNamespace(**json.decode(request.question))
    if isinstance(request, DescribeConfigsRequest | IncrementalAlterConfigsRequest):
        found: Any = [each for each in request.resources if _CONFIG_RESOURCES.get(each.resource_type) == code]
    else:
        found = _first(request, *_NAMES.get(ErrorCode(code), ()))
    elements = [found] if isinstance(found, str) else found or []
    names = (each if isinstance(each, str) else _first(each, *_NAME_IN) for each in elements)
    return [name for name in names if name]


def _first(message: object, *fields: str) -> Any:
    return next((value for field in fields if (value := getattr(message, field, None))), None)
