"""Kafka's rule for the names of topics is Kafka's front's: the core would take more."""

import pytest

from exacta.kafka.topic_names import LEGAL_NAMES, is_legal_name
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.kafka.wire import Front, Wire

ILLEGAL = ["tenant/ns/x", "a b", ".", "..", "x" * 250, "é"]


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets"])
def test_legal(name: str) -> None:
    assert is_legal_name(name)


@pytest.mark.parametrize("name", ["", "a\n", *ILLEGAL])
def test_illegal(name: str) -> None:
    assert not is_legal_name(name)


@pytest.mark.parametrize("name", ILLEGAL)
def test_no_request_creates_a_topic_of_an_illegal_name(broker: Front, wire: Wire, name: str) -> None:
    topics = [CreatableTopic(name=each, num_partitions=1, replication_factor=1) for each in (name, "good")]
    answers = wire.ask(CreateTopicsRequest(topics=topics), 7).topics
    assert [each.error_code for each in answers] == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE]
    assert [each.error_message for each in answers] == [LEGAL_NAMES, None]
    wanted = [MetadataRequestTopic(name=each) for each in (name, "also-good")]
    described = {each.name: each.error_code for each in wire.ask(MetadataRequest(topics=wanted), 9).topics}
    assert described == {name: ErrorCode.INVALID_TOPIC_EXCEPTION, "also-good": ErrorCode.NONE}
    assert set(broker.on_loop(lambda: broker.engine._state.topics)) == {"good", "also-good"}
