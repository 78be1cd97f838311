"""GET_SCHEMA tells what a schema version stands for, or the schema of a topic; no topic has one (decision 0036)."""

from google.protobuf.message import Message

from exacta.front.broker import Broker
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandGetSchema,
    CommandGetSchemaResponse,
    Schema,
    ServerError,
)
from exacta.pulsar.at_follower import CATCHES_UP
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import Need, Needs, the_topic
from exacta.pulsar.schemas import STRING_VERSION
from exacta.pulsar.topic_names import NamedTopic
from exacta.pulsar.topics import find_topic

NEEDS: Needs[CommandGetSchema] = (Need(Operation.DESCRIBE, the_topic),)


def handle(broker: Broker, command: CommandGetSchema, request: PulsarRequest) -> None:
    """Answer with TopicNotFound where there is no schema: clients then take the topic for one of bytes."""

    def found(topic: NamedTopic) -> None:
        if command.schema_version != STRING_VERSION:
            request.refuse(ServerError.TopicNotFound, f"{topic} has no such schema")
            return
        schema = Schema(name=topic.name.topic.partition("://")[2], schema_data=b"", type=Schema.String)
        request.reply(
            CommandGetSchemaResponse(request_id=command.request_id, schema=schema, schema_version=STRING_VERSION)
        )

    find_topic(broker, request, command.topic, found, creates=False)


def refused(command: CommandGetSchema, error: ServerError, text: str) -> Message:
    """Refuse to tell."""
    return CommandGetSchemaResponse(request_id=command.request_id, error_code=error, error_message=text)


HANDLER = Handler(type=BaseCommand.GET_SCHEMA, needs=NEEDS, at_follower=CATCHES_UP, handle=handle, refused=refused)
