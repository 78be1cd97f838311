"""The table of the API versions that this client speaks, request by request.

The codec may know more versions. The upper bounds are a decision, not an omission: Produce 11, EndTxn 4,
TxnOffsetCommit 4, AddPartitionsToTxn 3 and InitProducerId 4 are the last versions whose use means version 1 of the
transaction protocol (KIP-890), Metadata 12 and OffsetCommit 9 are all that is needed of them, Fetch 13 is the first
that names topics by their ids (12, by name, serves where an id is unknown: `fetcher.py`), OffsetFetch 7 and
FindCoordinator 3 are the last with one key each (their successors bundle keys, which serves nobody here).
"""

from typing import Any, NamedTuple

from exacta.protocol.kafka.messages.k00_produce import ProduceRequest, ProduceResponse
from exacta.protocol.kafka.messages.k01_fetch import FetchRequest, FetchResponse
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsRequest, ListOffsetsResponse
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataResponse
from exacta.protocol.kafka.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitResponse
from exacta.protocol.kafka.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from exacta.protocol.kafka.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupResponse
from exacta.protocol.kafka.messages.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse
from exacta.protocol.kafka.messages.k15_describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from exacta.protocol.kafka.messages.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from exacta.protocol.kafka.messages.k19_create_topics import CreateTopicsRequest, CreateTopicsResponse
from exacta.protocol.kafka.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from exacta.protocol.kafka.messages.k21_delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from exacta.protocol.kafka.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest, EndTxnResponse
from exacta.protocol.kafka.messages.k27_write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from exacta.protocol.kafka.messages.k28_txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from exacta.protocol.kafka.messages.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse
from exacta.protocol.kafka.messages.k30_create_acls import CreateAclsRequest, CreateAclsResponse
from exacta.protocol.kafka.messages.k31_delete_acls import DeleteAclsRequest, DeleteAclsResponse
from exacta.protocol.kafka.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from exacta.protocol.kafka.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from exacta.protocol.kafka.messages.k42_delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from exacta.protocol.kafka.messages.k48_describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from exacta.protocol.kafka.messages.k49_alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from exacta.protocol.kafka.messages.k50_describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from exacta.protocol.kafka.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from exacta.protocol.kafka.messages.k61_describe_producers import DescribeProducersRequest, DescribeProducersResponse
from exacta.protocol.kafka.messages.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from exacta.protocol.kafka.messages.k66_list_transactions import ListTransactionsRequest, ListTransactionsResponse
from exacta.protocol.kafka.messages.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from exacta.protocol.kafka.messages.k69_consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from exacta.protocol.kafka.messages.k17784_end_transactions import EndTransactionsRequest, EndTransactionsResponse
from exacta.protocol.kafka.messages.k17788_reset_subscription import (
    ResetSubscriptionRequest,
    ResetSubscriptionResponse,
)
from exacta.protocol.kafka.messages.k17789_abort_handles import AbortHandlesRequest, AbortHandlesResponse
from exacta.protocol.kafka.messages.k17790_join_transaction import JoinTransactionRequest, JoinTransactionResponse
from exacta.protocol.kafka.messages.k17791_acknowledge_messages import (
    AcknowledgeMessagesRequest,
    AcknowledgeMessagesResponse,
)
from exacta.protocol.kafka.messages.k17792_ask import AskRequest, AskResponse
from exacta.protocol.kafka.messages.k17793_move_lead import MoveLeadRequest, MoveLeadResponse

API_VERSIONS_KEY = 18


class Call(NamedTuple):
    """The way to call one request: its key, the type of its reply, and the versions that we speak (both inclusive)."""

    key: int
    response: type[Any]
    first_version: int
    last_version: int


_CALLS: dict[type[Any], Call] = {
    ProduceRequest: Call(0, ProduceResponse, 3, 11),
    FetchRequest: Call(1, FetchResponse, 4, 13),
    ListOffsetsRequest: Call(2, ListOffsetsResponse, 2, 7),
    MetadataRequest: Call(3, MetadataResponse, 4, 12),
    OffsetCommitRequest: Call(8, OffsetCommitResponse, 2, 9),
    OffsetFetchRequest: Call(9, OffsetFetchResponse, 7, 7),
    FindCoordinatorRequest: Call(10, FindCoordinatorResponse, 1, 3),
    # Since version 4 a member gets its id before it takes part in a rebalance.
    JoinGroupRequest: Call(11, JoinGroupResponse, 4, 7),
    LeaveGroupRequest: Call(13, LeaveGroupResponse, 3, 4),
    DescribeGroupsRequest: Call(15, DescribeGroupsResponse, 0, 6),
    ListGroupsRequest: Call(16, ListGroupsResponse, 0, 5),
    # After version 0 of the handshake tokens would travel without requests around them.
    SaslHandshakeRequest: Call(17, SaslHandshakeResponse, 1, 1),
    ApiVersionsRequest: Call(API_VERSIONS_KEY, ApiVersionsResponse, 0, 3),
    CreateTopicsRequest: Call(19, CreateTopicsResponse, 2, 6),
    # Version 6 names topics by ids as well, which are not asked for here.
    DeleteTopicsRequest: Call(20, DeleteTopicsResponse, 1, 5),
    DeleteRecordsRequest: Call(21, DeleteRecordsResponse, 0, 2),
    InitProducerIdRequest: Call(22, InitProducerIdResponse, 0, 4),
    AddPartitionsToTxnRequest: Call(24, AddPartitionsToTxnResponse, 0, 3),
    AddOffsetsToTxnRequest: Call(25, AddOffsetsToTxnResponse, 0, 3),
    EndTxnRequest: Call(26, EndTxnResponse, 0, 4),
    # Version 2 asks for stricter epochs (KIP-1228), which a marker that is late need not have.
    WriteTxnMarkersRequest: Call(27, WriteTxnMarkersResponse, 1, 1),
    TxnOffsetCommitRequest: Call(28, TxnOffsetCommitResponse, 0, 4),
    DescribeAclsRequest: Call(29, DescribeAclsResponse, 1, 3),
    CreateAclsRequest: Call(30, CreateAclsResponse, 1, 3),
    DeleteAclsRequest: Call(31, DeleteAclsResponse, 1, 3),
    DescribeConfigsRequest: Call(32, DescribeConfigsResponse, 1, 4),
    SaslAuthenticateRequest: Call(36, SaslAuthenticateResponse, 0, 2),
    CreatePartitionsRequest: Call(37, CreatePartitionsResponse, 0, 3),
    DeleteGroupsRequest: Call(42, DeleteGroupsResponse, 0, 2),
    IncrementalAlterConfigsRequest: Call(44, IncrementalAlterConfigsResponse, 0, 1),
    DescribeClientQuotasRequest: Call(48, DescribeClientQuotasResponse, 0, 1),
    AlterClientQuotasRequest: Call(49, AlterClientQuotasResponse, 0, 1),
    DescribeUserScramCredentialsRequest: Call(50, DescribeUserScramCredentialsResponse, 0, 0),
    AlterUserScramCredentialsRequest: Call(51, AlterUserScramCredentialsResponse, 0, 0),
    DescribeProducersRequest: Call(61, DescribeProducersResponse, 0, 0),
    DescribeTransactionsRequest: Call(65, DescribeTransactionsResponse, 0, 0),
    ListTransactionsRequest: Call(66, ListTransactionsResponse, 0, 2),
    # Since version 1 a member chooses its own id (KIP-1082).
    ConsumerGroupHeartbeatRequest: Call(68, ConsumerGroupHeartbeatResponse, 1, 1),
    ConsumerGroupDescribeRequest: Call(69, ConsumerGroupDescribeResponse, 0, 1),
    EndTransactionsRequest: Call(17784, EndTransactionsResponse, 0, 0),
    ResetSubscriptionRequest: Call(17788, ResetSubscriptionResponse, 0, 0),
    AbortHandlesRequest: Call(17789, AbortHandlesResponse, 0, 0),
    JoinTransactionRequest: Call(17790, JoinTransactionResponse, 0, 0),
    AcknowledgeMessagesRequest: Call(17791, AcknowledgeMessagesResponse, 0, 0),
    AskRequest: Call(17792, AskResponse, 0, 0),
    MoveLeadRequest: Call(17793, MoveLeadResponse, 0, 0),
}


def call_of(request: object) -> Call:
    """Return how `request` is called; raises `KeyError` for a message that this client does not send."""
    return _CALLS[type(request)]


def usable_version(call: Call, offered: tuple[int, int] | None) -> int | None:
    """Return the newest version that both we and the broker speak, or None."""
    if offered is None:
        return None
    newest = min(call.last_version, offered[1])
    return newest if newest >= max(call.first_version, offered[0]) else None
