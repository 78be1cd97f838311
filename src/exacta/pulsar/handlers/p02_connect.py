"""CONNECT opens a connection: the versions, the largest message, and what is offered.

It reads bytes before a login.
"""

from typing import Final

from exacta.front.broker import Broker
from exacta.protocol.pulsar.commands import PROTOCOL_VERSION
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandConnect, CommandConnected, FeatureFlags
from exacta.pulsar.context import Handler, PulsarRequest, no_answer
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL
LONGEST_VERSION: Final = 255
"""This many characters of a client's version are kept: transactions remember them."""


def handle(broker: Broker, command: CommandConnect, request: PulsarRequest) -> None:
    """Let everybody in whom the door lets in: credentials are not looked at, and a certificate was before CONNECT came.

    Topic watchers are not offered, so that clients ask for the topics of a namespace themselves.
    """
    request.connection.client_version = command.client_version[:LONGEST_VERSION] or "unknown"
    request.connection.consumers.takes_broker_entries = command.feature_flags.supports_broker_entry_metadata
    request.reply(
        CommandConnected(
            server_version="Exacta",
            protocol_version=min(command.protocol_version, PROTOCOL_VERSION),
            max_message_size=broker.configuration.pulsar_max_message_size,
            feature_flags=FeatureFlags(
                supports_broker_entry_metadata=True,
                supports_get_partitioned_metadata_without_auto_creation=True,
            ),
        )
    )


HANDLER = Handler(type=BaseCommand.CONNECT, needs=NEEDS, handle=handle, refused=no_answer)
