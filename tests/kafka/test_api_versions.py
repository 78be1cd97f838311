"""What is advertised, and that every advertised version is served."""

import struct
from pathlib import Path

import pytest

from exacta.kafka import handlers
from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import API, ApiKey
from exacta.protocol.kafka.codec import decode_response
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.kafka.wire import Wire, front

NEEDED = {
    # What librdkafka 2.16, aiokafka 0.14, kafka-python 3 and Java 3.9 and 4.x (KIP-896) can speak at the lowest.
    ApiKey.PRODUCE: 3,
    ApiKey.FETCH: 4,
    ApiKey.LIST_OFFSETS: 1,
    ApiKey.METADATA: 0,
    ApiKey.OFFSET_COMMIT: 2,
    ApiKey.OFFSET_FETCH: 1,
    ApiKey.FIND_COORDINATOR: 0,
    ApiKey.JOIN_GROUP: 2,
    ApiKey.CREATE_TOPICS: 2,
    ApiKey.DELETE_TOPICS: 1,
    ApiKey.DESCRIBE_CONFIGS: 1,
    ApiKey.INIT_PRODUCER_ID: 0,
}


def test_one_file_for_each_api_and_each_file_in_the_table() -> None:
    names = {path.stem for path in Path(handlers.__file__).parent.glob("k*.py")}
    assert {f"k{key:02d}" for key in HANDLERS} == {name.split("_")[0] for name in names}
    assert len(names) == len(HANDLERS)


def test_every_served_version_is_known_to_the_codec() -> None:
    for key, handler in HANDLERS.items():
        assert handler.min_version in API[key].versions
        assert handler.max_version in API[key].versions


@pytest.mark.parametrize(("key", "lowest"), NEEDED.items())
def test_clients_find_a_common_version(key: ApiKey, lowest: int) -> None:
    assert HANDLERS[key].advertised_min_version <= lowest <= HANDLERS[key].max_version


@pytest.mark.parametrize("version", range(6))
def test_answer(wire: Wire, version: int) -> None:
    response = wire.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), version)
    assert response.error_code == ErrorCode.NONE
    served = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert set(served) == set(HANDLERS)
    assert served[ApiKey.PRODUCE] == (0, 13)
    assert served[ApiKey.END_TXN] == (0, 5)
    if version >= 3:
        levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
        assert levels == {"transaction.version": 2, "group.version": 1}
        lowest = 0 if version >= 4 else 1  # clients up to 3.8 refuse a feature whose levels begin at 0
        supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
        assert supported == {"transaction.version": (lowest, 2), "group.version": (lowest, 1)}


def test_a_broker_may_tell_its_clients_to_speak_version_1() -> None:
    with front(transaction_version=1) as broker:
        response = broker.connect().ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
        levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
        assert levels["transaction.version"] == 1


def test_an_unknown_version_is_answered_in_version_0(wire: Wire) -> None:
    wire.socket.sendall(struct.pack(">ihhih", 12, 18, 42, 77, -1) + b"\0\0")
    correlation_id, response = decode_response(ApiVersionsResponse, 0, wire.receive_frame())
    assert correlation_id == 77
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert ApiKey.API_VERSIONS in {each.api_key for each in response.api_keys}
    assert wire.ask(MetadataRequest(topics=[]), 9).cluster_id == "a-cluster"  # the connection lives


@pytest.mark.parametrize("version", range(3))
def test_produce_of_before_kafka_0_11_is_advertised_and_refused_in_its_own_words(wire: Wire, version: int) -> None:
    body = struct.pack(">hii", -1, 1000, 1) + struct.pack(">h1si", 1, b"t", 1) + struct.pack(">ii", 5, 3) + b"old"
    wire.socket.sendall(struct.pack(">ihhih", 10 + len(body), 0, version, 5, -1) + body)
    frame = wire.receive_frame()
    assert frame[:4] == struct.pack(">i", 5)
    expected = struct.pack(">ih1siihq", 1, 1, b"t", 1, 5, ErrorCode.UNSUPPORTED_VERSION, -1)
    expected += struct.pack(">q", -1) if version == 2 else b""
    expected += struct.pack(">i", 0) if version >= 1 else b""
    assert frame[4:] == expected


def test_produce_of_before_kafka_0_11_without_acks_gets_no_answer(wire: Wire) -> None:
    body = struct.pack(">hii", 0, 1000, 0)
    wire.socket.sendall(struct.pack(">ihhih", 10 + len(body), 0, 2, 5, -1) + body)
    assert wire.ask(MetadataRequest(topics=[]), 9).controller_id == 0


def test_newer_produce_is_not_served(wire: Wire) -> None:
    wire.socket.sendall(struct.pack(">ihhih", 10, ApiKey.PRODUCE, 14, 1, -1))
    assert wire.is_closed()
