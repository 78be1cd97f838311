"""An answer that is a code for each element names every one of them, as the schemas of request and response say."""

from itertools import count, repeat
from typing import Any

import msgspec
import pytest

from exacta.kafka.coded_answers import Elements, coded, refused
from exacta.kafka.handler import Handler
from exacta.kafka.handlers import HANDLERS
from exacta.kafka.needs import Each
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k00_produce,
    k02_list_offsets,
    k09_offset_fetch,
    k15_describe_groups,
    k27_write_txn_markers,
    k30_create_acls,
    k47_offset_delete,
)
from exacta.protocol.kafka.schema import Message
from tests.kafka.access_cases import CASES
from tests.kafka.access_rules import codes, names

CODE = ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    "handler", [each for each in HANDLERS.values() if each.can_refuse], ids=lambda handler: handler.name
)
def test_every_api_refuses_every_version(handler: Handler) -> None:
    for version in range(handler.min_version, handler.max_version + 1):
        request = CASES[handler.key].build(version, names("hidden"))
        assert CODE in codes(handler.refusal_of_all(request, CODE, version))
        for need in handler.needs:
            if isinstance(need, Each) and getattr(request, need.elements):
                assert CODE in codes(handler.refusal_of(need, request, CODE, version))


def test_what_is_wanted_is_not_told() -> None:
    partition = k02_list_offsets.ListOffsetsPartition(partition_index=3, timestamp=77)
    topics = [k02_list_offsets.ListOffsetsTopic(name="t", partitions=[partition])]
    answer: Any = refused(
        k02_list_offsets.ListOffsetsResponse, k02_list_offsets.ListOffsetsRequest(topics=topics), CODE, 7
    )
    told = answer.topics[0].partitions[0]
    assert (told.partition_index, told.error_code, told.timestamp) == (3, CODE, -1)


def test_an_element_with_a_code_of_its_own_says_nothing_of_what_is_in_it() -> None:
    topic = k09_offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    groups = [k09_offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=[topic])]
    request = k09_offset_fetch.OffsetFetchRequest(groups=groups)
    answer = coded(k09_offset_fetch.OffsetFetchResponse, Elements("groups", "groups"), request, repeat(CODE), 9)
    assert [(each.group_id, each.error_code, each.topics) for each in answer.groups] == [("g", CODE, [])]


def test_elements_that_are_plain_values_are_named() -> None:
    request = k15_describe_groups.DescribeGroupsRequest(groups=["a", "b"])
    answer = refused(k15_describe_groups.DescribeGroupsResponse, request, CODE, 5)
    assert [(each.group_id, each.error_code) for each in answer.groups] == [("a", CODE), ("b", CODE)]


def test_elements_without_a_name_are_counted() -> None:
    request = k30_create_acls.CreateAclsRequest(creations=[k30_create_acls.AclCreation()] * 2)
    answer = refused(k30_create_acls.CreateAclsResponse, request, CODE, 3)
    assert [each.error_code for each in answer.results] == [CODE, CODE]


def test_codes_are_told_in_the_order_of_the_request() -> None:
    topics = [k27_write_txn_markers.WritableTxnMarkerTopic(name=name, partition_indexes=[5, 6]) for name in "ab"]
    markers = [k27_write_txn_markers.WritableTxnMarker(producer_id=number, topics=topics) for number in (1, 2)]
    request = k27_write_txn_markers.WriteTxnMarkersRequest(markers=markers)
    arrays = Elements("markers", "markers")
    answer = coded(k27_write_txn_markers.WriteTxnMarkersResponse, arrays, request, count(), 1)
    assert [
        (marker.producer_id, topic.name, each.partition_index, each.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for each in topic.partitions
    ] == [
        (marker, topic, index, 4 * (marker - 1) + 2 * "ab".index(topic) + index - 5)
        for marker in (1, 2)
        for topic in "ab"
        for index in (5, 6)
    ]


def test_a_response_that_is_a_code_alone_has_no_elements() -> None:
    topics = [k47_offset_delete.OffsetDeleteRequestTopic(name="t")]
    request = k47_offset_delete.OffsetDeleteRequest(group_id="g", topics=topics)
    answer = refused(k47_offset_delete.OffsetDeleteResponse, request, CODE, 0)
    assert (answer.error_code, answer.topics) == (CODE, [])


def test_a_produce_that_wants_no_answer_gets_none() -> None:
    handler = HANDLERS[0]
    data = [k00_produce.PartitionProduceData(index=1)]
    request: Message = k00_produce.ProduceRequest(
        acks=0, topic_data=[k00_produce.TopicProduceData(name="t", partition_data=data)]
    )
    assert handler.refusal_of_all(request, CODE, 9) is None
    answer: Any = handler.refusal_of_all(msgspec.structs.replace(request, acks=1), CODE, 9)
    told = answer.responses[0].partition_responses[0]
    assert (told.index, told.error_code, told.base_offset) == (1, CODE, -1)
