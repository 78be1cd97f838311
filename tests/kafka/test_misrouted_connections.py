"""A client that says which cluster and node it means, and has reached another one (KIP-1242).

With EXACTA_TEST_BROKER=kafka the broker is an Apache Kafka, which answers the same.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from exacta.protocol.kafka.messages.k18_api_versions import NO_NODE, ApiVersionsRequest
from tests.conformance import brokers
from tests.kafka.wire import Wire, front

NAMING, NOT_NAMING = 5, 4
"""The first version in which a client names cluster and node, and the last one in which it does not."""
ANOTHER = "another-cluster"
_NEITHER = None, NO_NODE


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A connection to a broker."""
    if brokers.ON_KAFKA:
        with brokers.broker_process(tmp_path_factory.mktemp("kafka")) as broker:
            host, port = broker.bootstrap.split(":")
            wire = Wire((host, int(port)))
            yield wire
            wire.socket.close()
    else:
        with front() as running:
            yield running.connect()


@pytest.fixture(scope="module")
def reached(wire: Wire) -> tuple[str, int]:
    """The cluster and the node that the connection has reached."""
    metadata = wire.ask(MetadataRequest(topics=[]), 9)
    (node,) = metadata.brokers
    return metadata.cluster_id, node.node_id


def ask(
    wire: Wire, means: tuple[str | None, int], software: tuple[str, str] = ("x", "1"), version: int = NAMING
) -> Any:
    request = ApiVersionsRequest(client_software_name=software[0], client_software_version=software[1])
    request.cluster_id, request.node_id = means
    return wire.ask(request, version)


def test_who_is_right_or_says_nothing_is_served(wire: Wire, reached: tuple[str, int]) -> None:
    for means in (reached, _NEITHER):
        answer = ask(wire, means)
        assert (answer.error_code, bool(answer.api_keys)) == (ErrorCode.NONE, True)


def test_who_means_another_cluster_or_node_is_sent_to_its_bootstrap_addresses(
    wire: Wire, reached: tuple[str, int]
) -> None:
    cluster, node = reached
    for means in ((ANOTHER, node), (cluster, node + 1), (ANOTHER, node + 1), ("", node), (cluster, -2)):
        answer = ask(wire, means)
        assert (answer.error_code, answer.api_keys, answer.finalized_features) == (
            ErrorCode.REBOOTSTRAP_REQUIRED,
            [],
            [],
        ), means
    assert ask(wire, reached).error_code == ErrorCode.NONE  # the connection lives


def test_one_of_the_two_alone_is_no_valid_request(wire: Wire, reached: tuple[str, int]) -> None:
    cluster, node = reached
    for means in ((cluster, NO_NODE), (None, node), (ANOTHER, NO_NODE), (None, -2)):
        assert ask(wire, means).error_code == ErrorCode.INVALID_REQUEST, means


def test_older_versions_name_neither(wire: Wire) -> None:
    assert ask(wire, _NEITHER, version=NOT_NAMING).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [3, NOT_NAMING, NAMING])
@pytest.mark.parametrize(
    ("software", "code"),
    [
        (("kgo", "1.20.0-rc.1"), ErrorCode.NONE),
        (("a", "0"), ErrorCode.NONE),
        (("", ""), ErrorCode.INVALID_REQUEST),
        (("x", ""), ErrorCode.INVALID_REQUEST),
        (("-x", "1"), ErrorCode.INVALID_REQUEST),
        (("x", "1."), ErrorCode.INVALID_REQUEST),
        (("my client", "1"), ErrorCode.INVALID_REQUEST),
        (("x\n", "1"), ErrorCode.INVALID_REQUEST),
        (("bücher", "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_software_names_are_those_that_kafka_takes(
    wire: Wire, version: int, software: tuple[str, str], code: ErrorCode
) -> None:
    """KIP-511: letters, digits, and dots and hyphens inside."""
    assert ask(wire, _NEITHER, software, version).error_code == code
