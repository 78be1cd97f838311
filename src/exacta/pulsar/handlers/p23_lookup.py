"""LOOKUP tells which broker serves a topic: the one that leads the log, whatever the topic."""

from google.protobuf.message import Message

from exacta.front.broker import Broker
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    ServerError,
)
from exacta.pulsar.at_follower import NO_LEADER, SERVES
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import Need, Needs, the_topic
from exacta.pulsar.topics import read_topic

NEEDS: Needs[CommandLookupTopic] = (Need(Operation.DESCRIBE, the_topic),)


def handle(broker: Broker, command: CommandLookupTopic, request: PulsarRequest) -> None:
    """Answer at once; whether the topic is there is told to those who open something on it."""
    if read_topic(request, command.topic) is None:
        return
    urls = request.shared.leader_urls(request.local_host)
    if urls is None:
        request.refuse(ServerError.ServiceNotReady, NO_LEADER)
        return
    request.reply(
        CommandLookupTopicResponse(
            request_id=command.request_id,
            response=CommandLookupTopicResponse.Connect,
            broker_service_url=urls.broker or None,
            broker_service_url_tls=urls.broker_tls or None,
            authoritative=True,
        )
    )


def refused(command: CommandLookupTopic, error: ServerError, text: str) -> Message:
    """Refuse to tell."""
    return CommandLookupTopicResponse(
        request_id=command.request_id, response=CommandLookupTopicResponse.Failed, error=error, message=text
    )


HANDLER = Handler(type=BaseCommand.LOOKUP, needs=NEEDS, at_follower=SERVES, handle=handle, refused=refused)
