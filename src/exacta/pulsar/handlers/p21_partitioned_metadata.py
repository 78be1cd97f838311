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
from exacta.pulsar.at_follower import CATCHES_UP
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import Need, Needs, the_topic
from exacta.pulsar.topics import tell_partitions

NEEDS: Needs[CommandPartitionedTopicMetadata] = (Need(Operation.DESCRIBE, the_topic),)


def handle(broker: Broker, command: CommandPartitionedTopicMetadata, request: PulsarRequest) -> None:
    """Answer once the topic is there; it is created unless the client does not want that (PIP-344)."""

    def tell(partitions: int) -> None:
        request.reply(
            CommandPartitionedTopicMetadataResponse(
                request_id=command.request_id,
                response=CommandPartitionedTopicMetadataResponse.Success,
                partitions=partitions,
            )
        )

    tell_partitions(broker, request, command.topic, tell, creates=command.metadata_auto_creation_enabled)


def refused(command: CommandPartitionedTopicMetadata, error: ServerError, text: str) -> Message:
    """Refuse to tell."""
    return CommandPartitionedTopicMetadataResponse(
        request_id=command.request_id,
        response=CommandPartitionedTopicMetadataResponse.Failed,
        error=error,
        message=text,
    )


HANDLER = Handler(
    type=BaseCommand.PARTITIONED_METADATA, needs=NEEDS, at_follower=CATCHES_UP, handle=handle, refused=refused
)
