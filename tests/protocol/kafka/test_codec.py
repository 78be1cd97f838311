"""The codec's interface by example: bytes written by hand, headers, scatter output, and what it refuses."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.codec import (
    DecodeError,
    EncodeError,
    RequestHeader,
    UnsupportedVersion,
    decode,
    decode_request,
    decode_request_header,
    decode_response,
    encode,
    encode_request,
    encode_response,
)
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k18_api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from exacta.protocol.kafka.schema import Message
from tests.protocol.kafka.strategies import MESSAGES, message_id, messages
from tests.shares import examples

REQUESTS = [(cls, version) for cls, version in MESSAGES if cls.__name__.endswith("Request")]
RESPONSES = [(cls, version) for cls, version in MESSAGES if cls.__name__.endswith("Response")]

fixed = settings(max_examples=examples(100), database=None)


def test_a_request_of_fixed_layout() -> None:
    message = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    frame = b"".join(encode_request(message, 1, 7, "me"))
    assert frame == bytes.fromhex(
        "00000014"  # size
        "0016 0001 00000007"  # key, version, correlation id
        "0002 6d65"  # client id
        "0002 7478"  # transactional id
        "0000ea60"  # time-out
    )
    header, body_start = decode_request_header(memoryview(frame)[4:])
    assert header == RequestHeader(api_key=22, api_version=1, correlation_id=7, client_id="me")
    assert decode_request(frame[4:], header, body_start) == message


def test_a_request_of_flexible_layout() -> None:
    message = InitProducerIdRequest(transaction_timeout_ms=1, producer_id=2, producer_epoch=3)
    frame = b"".join(encode_request(message, 3, 7, None))
    assert frame == bytes.fromhex(
        "0000001b"
        "0016 0003 00000007"
        "ffff 00"  # no client id; no tagged fields in the header
        "00"  # no transactional id
        "00000001 0000000000000002 0003 00"
    )
    header, body_start = decode_request_header(memoryview(frame)[4:])
    assert header.client_id is None
    assert decode_request(frame[4:], header, body_start) == message


def test_a_response_with_a_flexible_header() -> None:
    message = InitProducerIdResponse(producer_id=5, producer_epoch=1)
    frame = b"".join(encode_response(message, 2, 9))
    assert frame == bytes.fromhex("00000016 00000009 00 00000000 0000 0000000000000005 0001 00")
    assert decode_response(InitProducerIdResponse, 2, frame[4:]) == (9, message)


def test_responses_to_api_versions_never_have_a_flexible_header() -> None:
    message = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=4)])
    frame = b"".join(encode_response(message, 3, 9))
    assert frame[:8] == bytes.fromhex("00000013 00000009")
    assert frame[8:] == bytes.fromhex("0000 02 0012 0000 0004 00 00000000 00")
    assert decode_response(ApiVersionsResponse, 3, frame[4:]) == (9, message)


@pytest.mark.parametrize(
    ("request_", "encoded"),
    [
        (ApiVersionsRequest(client_software_name="x", client_software_version="1"), "0278 0231 00 ffffffff 00"),
        (
            ApiVersionsRequest(
                client_software_name="apache-kafka-java",
                client_software_version="4.4.0",
                cluster_id="a-cluster",
                node_id=3,
            ),
            "12 6170616368652d6b61666b612d6a617661 06 342e342e30 0a 612d636c7573746572 00000003 00",
        ),
    ],
)
def test_the_cluster_and_the_node_that_a_client_means_are_as_kafka_4_4_writes_them(
    request_: ApiVersionsRequest, encoded: str
) -> None:
    """No other codec here knows version 5 (KIP-1242); Kafka's own classes made these bytes."""
    assert b"".join(encode(request_, 5)) == bytes.fromhex(encoded)
    assert decode(ApiVersionsRequest, 5, bytes.fromhex(encoded)) == request_


def test_tagged_fields_are_written_in_the_order_of_tags_and_left_out_where_they_equal_the_default() -> None:
    message = ApiVersionsResponse(
        finalized_features_epoch=1, supported_features=[SupportedFeatureKey(name="f", max_version=2)]
    )
    assert b"".join(encode(message, 3)) == bytes.fromhex(
        "0000 01 00000000"
        "02"  # two tagged fields
        "00 08 02 02 66 0000 0002 00"  # tag 0, eight bytes
        "01 08 0000000000000001"  # tag 1
    )


@pytest.mark.parametrize(("cls", "version"), REQUESTS, ids=message_id)
def test_every_request_passes_through_a_frame(cls: type[Message], version: int) -> None:
    frame = b"".join(encode_request(cls(), version, -1, "é"))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header, body_start = decode_request_header(memoryview(frame)[4:])
    assert header == RequestHeader(cls.SCHEMA.key, version, -1, "é")
    assert decode_request(memoryview(frame)[4:], header, body_start) == cls()


@pytest.mark.parametrize(("cls", "version"), RESPONSES, ids=message_id)
def test_every_response_passes_through_a_frame(cls: type[Message], version: int) -> None:
    frame = b"".join(encode_response(cls(), version, 1 << 30))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert decode_response(cls, version, memoryview(frame)[4:]) == (1 << 30, cls())


@settings(fixed, max_examples=examples(150))
@given(st.sampled_from(MESSAGES).flatmap(lambda of: st.tuples(st.just(of[1]), messages(*of))), st.binary(max_size=9))
def test_a_message_is_read_wherever_it_stands(of: tuple[int, Message], around: bytes) -> None:
    version, message = of
    encoded = b"".join(encode(message, version))
    for kind in (bytes, bytearray, memoryview):
        assert decode(type(message), version, kind(around + encoded + around), len(around)) == message


def produce(*records: Any) -> ProduceRequest:
    partitions = [PartitionProduceData(index=index, records=each) for index, each in enumerate(records)]
    return ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=partitions)])


@pytest.mark.parametrize("version", [8, 11])
def test_record_bytes_are_not_copied(version: int) -> None:
    first, second = bytes(20_000), memoryview(bytes(30_000))
    buffers = encode_request(produce(first, None, [second, b"tail"]), version, 1, "me")
    assert buffers[1] is first
    assert buffers[3] is second
    frame = bytearray(b"".join(buffers))
    header, body_start = decode_request_header(memoryview(frame)[4:])
    request = decode_request(memoryview(frame)[4:], header, body_start)
    assert isinstance(request, ProduceRequest)
    decoded = request.topic_data[0].partition_data
    assert [each.records for each in decoded] == [first, None, bytes(second) + b"tail"]
    assert isinstance(decoded[0].records, memoryview)
    assert decoded[0].records.obj is frame


def test_empty_record_bytes_are_not_null() -> None:
    for version in ProduceRequest.SCHEMA.versions:
        for empty in (b"", list[bytes]()):
            body = b"".join(encode(produce(empty), version))
            assert decode(ProduceRequest, version, body).topic_data[0].partition_data[0].records == b""


def test_a_response_with_many_record_buffers() -> None:
    partitions = [
        PartitionData(partition_index=index, records=bytes(index), current_leader=LeaderIdAndEpoch(leader_id=index))
        for index in range(200)
    ]
    message = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    for version in (11, 12):
        _, decoded = decode_response(FetchResponse, version, b"".join(encode_response(message, version, 1))[4:])
        assert [each.records for each in decoded.responses[0].partitions] == [bytes(n) for n in range(200)]
    assert decoded == message


@pytest.mark.parametrize("tags", ["00", "01 63 00", "02 05 03 aabbcc ff01 01 00", "80 01" + "7f 00" * 128])
def test_unknown_tagged_fields_are_skipped(tags: str) -> None:
    message = EndTxnRequest(transactional_id="t", producer_id=1, committed=True)
    section = bytes.fromhex(tags)
    body = b"".join(encode(message, 3))[:-1] + section
    frame = memoryview(b"\x00\x1a\x00\x03\x00\x00\x00\x07\x00\x01c" + section + body)
    header, body_start = decode_request_header(frame)
    assert header == RequestHeader(26, 3, 7, "c")
    assert decode_request(frame, header, body_start) == message


def test_a_known_tagged_field_must_fill_its_size() -> None:
    body = bytes.fromhex("0000 01 00000000 01 01 08 0000000000000001")
    assert decode(ApiVersionsResponse, 3, body).finalized_features_epoch == 1
    for wrong in ("0000 01 00000000 01 01 07 00000000000001 00", "0000 01 00000000 01 01 09 0000000000000001 00"):
        with pytest.raises(DecodeError, match="finalized_features_epoch"):
            decode(ApiVersionsResponse, 3, bytes.fromhex(wrong))


def test_bytes_after_a_message_are_ignored() -> None:
    assert decode(MetadataRequest, 1, b"\0\0\0\0extra") == MetadataRequest()


@pytest.mark.parametrize(("key", "version"), [(7, 0), (-1, 0), (0, 2), (0, 99), (18, 6), (26, -1)])
def test_what_the_codec_does_not_know_still_has_a_header(key: int, version: int) -> None:
    head = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    frame = memoryview(head + b"\0\0\0\7\0\2me" + b"\0")
    header, body_start = decode_request_header(frame)
    assert header == RequestHeader(key, version, 7, "me")
    with pytest.raises(UnsupportedVersion) as refusal:
        decode_request(frame, header, body_start)
    assert (refusal.value.api_key, refusal.value.api_version) == (key, version)


@pytest.mark.parametrize(
    ("cls", "version", "body"),
    [
        (EndTxnRequest, 0, b"\xff\xff" + bytes(11)),  # null transactional id
        (EndTxnRequest, 3, bytes(12)),  # the same, compact
        (EndTxnRequest, 0, b"\0\1\xff" + bytes(11)),  # not UTF-8
        (EndTxnRequest, 3, b"\x81\x80\x02" + b"x" * 0x8000 + bytes(12)),  # a string longer than any may be
        (EndTxnRequest, 3, b"\x80\x80\x80\x80\x80\x01"),  # a varint of six bytes
        (MetadataRequest, 0, b"\xff\xff\xff\xff"),  # null topics, which version 0 does not have
        (ApiVersionsRequest, 3, b"\x01\x01\x01\x00\x7f"),  # a tagged field that exceeds the frame
    ],
)
def test_malformed_bodies_are_refused(cls: type[Message], version: int, body: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(cls, version, body)


def test_a_client_id_that_exceeds_the_frame_is_refused() -> None:
    with pytest.raises(DecodeError):
        decode_request_header(memoryview(b"\0\x1a\0\0\0\0\0\7\0\3me"))


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (EndTxnRequest(transactional_id=None), 0),  # type: ignore[arg-type]
        (EndTxnRequest(transactional_id=None), 3),  # type: ignore[arg-type]
        (EndTxnRequest(transactional_id="x" * 0x8000), 0),
        (EndTxnRequest(transactional_id="x" * 0x8000), 3),
        (EndTxnRequest(transactional_id="\ud800"), 3),
        (EndTxnRequest(producer_epoch=1 << 15), 3),
        (EndTxnRequest(producer_id="1"), 3),  # type: ignore[arg-type]
        (EndTxnRequest(), 6),
        (EndTxnRequest(), -1),
        (MetadataRequest(topics=None), 0),
        (MetadataRequest(topics=[EndTxnRequest()]), 1),  # type: ignore[list-item]
    ],
)
def test_what_does_not_fit_the_wire_is_an_encode_error(message: Message, version: int) -> None:
    with pytest.raises(EncodeError):
        encode(message, version)


def test_a_client_id_that_does_not_fit_is_an_encode_error() -> None:
    with pytest.raises(EncodeError):
        encode_request(EndTxnRequest(), 0, 1, "x" * 0x8000)


def test_messages_do_not_share_their_lists() -> None:
    topics = MetadataRequest().topics
    assert topics is not None
    topics.append(MetadataRequestTopic())
    assert MetadataRequest().topics == []


def test_strings_at_the_limits_of_their_prefixes() -> None:
    for length in (0, 1, 125, 126, 127, 128, 0x7FFE, 0x7FFF):
        for version in (0, 3):
            message = EndTxnRequest(transactional_id="x" * length)
            assert decode(EndTxnRequest, version, encode(message, version)[0]) == message


def test_the_registry_knows_every_message() -> None:
    for key, api in API.items():
        assert api.key == key == api.request.SCHEMA.key == api.response.SCHEMA.key
        assert api.versions == api.response.SCHEMA.versions
        assert api.request.SCHEMA.flexible == api.response.SCHEMA.flexible
        assert (api.request.__name__, api.response.__name__) == (f"{api.name}Request", f"{api.name}Response")
        assert api.versions.last in api.versions
