"""GET_OR_CREATE_SCHEMA gives the version of a schema to a producer whose messages have several schemas."""

from google.protobuf.message import Message

from exacta.front.broker import Broker
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandGetOrCreateSchema,
    CommandGetOrCreateSchemaResponse,
    ServerError,
)
from exacta.pulsar.at_follower import NOT_READY
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import Need, Needs, the_topic
from exacta.pulsar.schemas import refusal_of, version_of
from exacta.pulsar.topic_names import NamedTopic
from exacta.pulsar.topics import find_topic

NEEDS: Needs[CommandGetOrCreateSchema] = (Need(Operation.WRITE, the_topic),)


def handle(broker: Broker, command: CommandGetOrCreateSchema, request: PulsarRequest) -> None:
    """Answer if the topic is there; it is not created."""
    refusal = refusal_of(command.schema)
    if refusal is not None:
        request.refuse(ServerError.IncompatibleSchema, refusal)
        return

    def found(topic: NamedTopic) -> None:
        version = version_of(command.schema)
        request.reply(CommandGetOrCreateSchemaResponse(request_id=command.request_id, schema_version=version))

    find_topic(broker, request, command.topic, found, creates=False)


def refused(command: CommandGetOrCreateSchema, error: ServerError, text: str) -> Message:
    """Refuse the schema."""
    return CommandGetOrCreateSchemaResponse(request_id=command.request_id, error_code=error, error_message=text)


HANDLER = Handler(
    type=BaseCommand.GET_OR_CREATE_SCHEMA, needs=NEEDS, at_follower=NOT_READY, handle=handle, refused=refused
)
