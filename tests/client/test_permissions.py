"""What the client says is missing is what the broker asks about: for each request and each code that can refuse it."""

from typing import Any

import pytest

from exacta.client import apis, permissions
from exacta.client.permissions import missing_permission
from exacta.kafka.handlers import HANDLERS
from exacta.kafka.needs import REFUSALS, Shown
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchRequest
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from exacta.protocol.kafka.messages.k10_find_coordinator import FindCoordinatorRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest
from exacta.protocol.kafka.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from exacta.protocol.kafka.messages.k42_delete_groups import DeleteGroupsRequest
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from exacta.protocol.kafka.messages.k50_describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from exacta.protocol.kafka.messages.k17791_acknowledge_messages import (
    AcknowledgeMessagesRequest,
    SubscriptionToAcknowledge,
)
from exacta.readmodel.groups import AskLag
from exacta.readmodel.subscriptions import AskSubscriptions
from exacta.readmodel.transactions import AskTransactions
from tests.kafka.asking import question

TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

NOT_OURS = {
    (FetchRequest, CLUSTER): "replicas alone need it",
    (AddPartitionsToTxnRequest, CLUSTER): "brokers alone send the versions that need it",
    (MetadataRequest, CLUSTER): "it is asked about only to tell what one may do with the cluster",
    (FindCoordinatorRequest, TOPIC): "no topic has a coordinator",
    (FindCoordinatorRequest, CLUSTER): "the cluster has no coordinator",
    (DescribeConfigsRequest, ID): "transactional ids have no configurations",
    (IncrementalAlterConfigsRequest, ID): "transactional ids have no configurations",
}
"""Needs of requests that our client does not have."""


def asked_for(request: type) -> dict[ErrorCode, set[Operation]]:
    """Return by the code of the refusal what the broker asks about; where it asks about several, all of these."""
    found: dict[ErrorCode, set[Operation]] = {}
    for need in HANDLERS[ApiKey(apis._CALLS[request].key)].needs:
        if isinstance(need, Shown):
            continue  # it refuses nothing
        kind: Any = getattr(need, "kind", None)
        kinds = [kind] if isinstance(kind, ResourceKind) else [each for each in ResourceKind if each in REFUSALS]
        for each in kinds:
            also = {operation for operation, resource in getattr(need, "instead", ()) if resource.kind is each}
            found.setdefault(REFUSALS[each], set()).update({need.operation} | also)
    return found


@pytest.mark.parametrize("request_type", apis._CALLS, ids=lambda each: each.__name__)
def test_each_refusal_of_a_request_has_the_operation_that_the_broker_asks_about(request_type):
    told = {code: words for (request, code), words in permissions._OPERATIONS.items() if request is request_type}
    for code, operations in asked_for(request_type).items():
        if (request_type, code) not in NOT_OURS:
            assert told.get(code) in {each.value for each in operations}, (code, operations)


@pytest.mark.parametrize(
    ("request_", "code", "said"),
    [
        (
            ProduceRequest(topic_data=[TopicProduceData(name="a"), TopicProduceData(name="b")]),
            TOPIC,
            "user 'alice' needs the permission Write on topic 'a', 'b'",
        ),
        (
            OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="a")]),
            GROUP,
            "user 'alice' needs the permission Read on group 'g'",
        ),
        (DeleteGroupsRequest(groups_names=["g"]), GROUP, "user 'alice' needs the permission Delete on group 'g'"),
        (
            InitProducerIdRequest(transactional_id="x", enable_2pc=True),
            ID,
            "user 'alice' needs the permission Write, and TwoPhaseCommit, on transactional id 'x'",
        ),
        (
            DescribeUserScramCredentialsRequest(),
            CLUSTER,
            "user 'alice' needs the permission Describe on the cluster",
        ),
        (
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(resource_type=2, resource_name="t"),
                    DescribeConfigsResource(resource_type=32, resource_name="g"),
                ]
            ),
            GROUP,
            "user 'alice' needs the permission DescribeConfigs on group 'g'",
        ),
        (question(AskLag(group="g")), GROUP, "user 'alice' needs the permission Describe on group 'g'"),
        (question(AskTransactions()), ID, "user 'alice' needs the permission Describe on transactional id"),
        (
            question(AskSubscriptions(topics=("t",))),
            TOPIC,
            "user 'alice' needs the permission Describe on topic 't'",
        ),
        (
            MetadataRequest(topics=[MetadataRequestTopic(name="t")]),
            TOPIC,
            "user 'alice' needs the permission Describe, and Create if it does not exist, on topic 't'",
        ),
        (
            InitProducerIdRequest(transactional_id=None),
            CLUSTER,
            "user 'alice' needs the permission Write on any topic, or IdempotentWrite on the cluster",
        ),
        (
            AcknowledgeMessagesRequest(subscriptions=[SubscriptionToAcknowledge(name="shop")]),
            TOPIC,
            "user 'alice' needs the permission Read on each topic of subscription 'shop'",
        ),
        (DescribeUserScramCredentialsRequest(), ErrorCode.NOT_COORDINATOR, None),
        (DescribeUserScramCredentialsRequest(), 9_999, None),
    ],
)
def test_what_is_said_names_the_resources(request_, code, said):
    assert missing_permission(request_, code, "user 'alice'") == said
