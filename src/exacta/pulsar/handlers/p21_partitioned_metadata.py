"""PARTITIONED_METADATA tells how many partitions a topic has: 0 if it is not partitioned (decision 0032)."""

from google.protobuf.message import Message

from exacta.front.broker import Broker
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
    ServerError,
)
from exacta.protocol.pulsar.topic_names import TopicName
from exacta.pulsar.context import PulsarRequest
from exacta.pulsar.handler import Handler
from exacta.pulsar.needs import Need, Needs, the_topic
from exacta.pulsar.partition_counts import partitions_of_name, partitions_told
from exacta.pulsar.producers import Place
from exacta.pulsar.topics import find_topic, parsed_name

NEEDS: Needs[CommandPartitionedTopicMetadata] = (Need(Operation.DESCRIBE, the_topic),)


def handle(broker: Broker, command: CommandPartitionedTopicMetadata, request: PulsarRequest) -> None:
    """Answer once the topic is there; it is created unless the client does not want that (PIP-344)."""
    name = parsed_name(request, command.topic)
    if name is None:
        return
    count = partitions_of_name(name)
    if count is not None:
        request.reply(_answer(command, count))
        return

    def found(topic: TopicName, place: Place) -> None:
        broker.read(
            request,
            lambda state, now_ms: partitions_told(broker, place[0]),
            lambda partitions: request.reply(_answer(command, partitions)),
        )

    find_topic(broker, request, command.topic, found, creates=command.metadata_auto_creation_enabled)


def _answer(command: CommandPartitionedTopicMetadata, partitions: int) -> Message:
    return CommandPartitionedTopicMetadataResponse(
        request_id=command.request_id,
        response=CommandPartitionedTopicMetadataResponse.Success,
        partitions=partitions,
    )


def refused(command: CommandPartitionedTopicMetadata, error: ServerError, text: str) -> Message:
    """Refuse to tell."""
    return CommandPartitionedTopicMetadataResponse(
        request_id=command.request_id,
        response=CommandPartitionedTopicMetadataResponse.Failed,
        error=error,
        message=text,
    )


HANDLER = Handler(type=BaseCommand.PARTITIONED_METADATA, needs=NEEDS, handle=handle, refused=refused)
