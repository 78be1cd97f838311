"""Schemas: BYTES and STRING are served, and every other one is refused with what to do."""

from typing import Any

import pulsar
import pytest
from pulsar.schema import JsonSchema, Record, String, StringSchema

import exacta
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.pulsar.schemas import STRING_VERSION, refusal_of
from tests.docstring_tables import docstring_table
from tests.kafka.access_rules import Rules
from tests.pulsar.by_hand import Broker
from tests.pulsar.wire import Wire, client

TABLE = docstring_table("exacta.pulsar.schemas", "type")
ROWS = {"NoSchema": "none named, NoSchema", "String": "String", "AutoConsume": "AutoConsume"}
"""The rows of the types that are served, by their names in the protocol."""


def schema_of(name: str) -> pb.Schema:
    return pb.Schema(name="order", schema_data=b"", type=name)


def subscribe(wire: Wire, schema: pb.Schema) -> Any:
    """Open a consumer with a schema; return the answer."""
    return wire.ask(wire.session.subscribe("t", "s", 1, pb.CommandSubscribe.Shared, schema=schema))


@pytest.mark.parametrize("name", pb.Schema.Type.keys())
def test_a_type_is_served_or_refused_in_words(wire: Wire, name: str) -> None:
    """The three commands that bring a schema agree."""
    wire.open_producer("t")
    schema = schema_of(name)
    answers = [
        wire.open_producer("t", 1, schema=schema),
        subscribe(wire, schema),
        wire.request(pb.CommandGetOrCreateSchema(topic="t", schema=schema)),
    ]
    errors = [getattr(each, "error", getattr(each, "error_code", 0)) for each in answers]
    row = ROWS.get(name, "every other")
    if TABLE[row, "three commands"] == "served":
        assert refusal_of(schema) is None
        assert errors == [0, 0, 0]
        expected = {"STRING_VERSION": STRING_VERSION, "-": b""}[TABLE[row, "version"]]
        assert answers[0].schema_version == answers[2].schema_version == expected
    else:
        assert errors == [pb.ServerError.Value(TABLE[row, "three commands"])] * 3
        texts = {answers[0].message, answers[1].message, answers[2].error_message}
        assert texts == {refusal_of(schema)}
        assert texts.pop().startswith(f"{name.upper()} schemas are not served yet, only BYTES and STRING: let the")


def test_what_was_sent_without_a_schema_is_served() -> None:
    assert refusal_of(pb.CommandProducer().schema) is None


def test_a_version_is_told_and_a_topic_has_none(wire: Wire) -> None:
    wire.open_producer("acme/shop/t", schema=schema_of("String"))

    def ask(topic: str, **fields: Any) -> Any:
        return wire.request(pb.CommandGetSchema(topic=topic, **fields))

    found = ask("acme/shop/t", schema_version=STRING_VERSION)
    assert (found.schema.type, found.schema.name, found.error_code) == (pb.Schema.String, "acme/shop/t", 0)
    assert ask("acme/shop/t").error_code == pb.ServerError.TopicNotFound
    assert ask("acme/shop/t", schema_version=bytes(8)).error_code == pb.ServerError.TopicNotFound
    assert ask("absent", schema_version=STRING_VERSION).error_code == pb.ServerError.TopicNotFound


def test_schemas_create_no_topic(wire: Wire) -> None:
    schema = schema_of("String")
    answer = wire.request(pb.CommandGetOrCreateSchema(topic="absent", schema=schema))
    assert answer.error_code == pb.ServerError.TopicNotFound
    assert answer.error_message


def test_the_real_client_sends_strings_and_reads_bytes_and_the_reverse(broker: exacta.Broker) -> None:
    schemas = {"string": StringSchema(), "bytes": pulsar.schema.BytesSchema()}
    with client(broker.pulsar_url) as opened:
        consumers = {name: opened.subscribe("orders", name, schema=schema) for name, schema in schemas.items()}
        for name, value in (("string", "é"), ("bytes", b"\xc3\xa9")):
            producer = opened.create_producer("orders", schema=schemas[name])
            producer.send(value)
            producer.close()
        values = {name: [each.receive(10_000).value() for _ in range(2)] for name, each in consumers.items()}
    assert values == {"string": ["é", "é"], "bytes": [b"\xc3\xa9"] * 2}


def test_the_real_client_is_told_that_json_is_not_served(broker: exacta.Broker) -> None:
    class Order(Record):  # type: ignore[misc]
        name = String()

    with client(broker.pulsar_url) as opened:
        with pytest.raises(pulsar.IncompatibleSchema):
            opened.create_producer("orders", schema=JsonSchema(Order))
        with pytest.raises(pulsar.IncompatibleSchema):
            opened.subscribe("orders", "s", schema=JsonSchema(Order))


@pytest.mark.parametrize(
    ("command", "right"),
    [
        (pb.CommandGetSchema(topic="t", request_id=1), Operation.DESCRIBE),
        (pb.CommandGetOrCreateSchema(topic="t", request_id=1, schema=schema_of("String")), Operation.WRITE),
    ],
)
def test_a_client_without_the_right_is_refused(command: Any, right: Operation) -> None:
    broker = Broker(Rules(lambda operation, resource: (operation, resource.name) != (right, "t")))
    answer = broker.connect().ask(command)
    assert answer.error_code == pb.ServerError.AuthorizationError
    assert answer.error_message
    broker.end()
