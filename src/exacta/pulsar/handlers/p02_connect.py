"""CONNECT opens a connection: who the client is, the versions, the largest message, and what is offered.

It reads bytes before a login.
"""

from typing import Final

from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.protocol.pulsar.commands import PROTOCOL_VERSION
from exacta.protocol.pulsar.messages_pb2 import AuthMethod, BaseCommand, CommandConnect, CommandConnected, FeatureFlags
from exacta.pulsar.at_follower import SERVES
from exacta.pulsar.context import Handler, PulsarRequest, no_answer
from exacta.pulsar.logging_in import carried_out, refuse
from exacta.pulsar.login import SERVER, Login
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL
LONGEST_VERSION: Final = 255
"""This many characters of a client's version are kept: transactions remember them."""

_FOR_PROXIES: Final = ("original_principal", "original_auth_data", "original_auth_method", "proxy_to_broker_url")
"""The fields by which a proxy speaks for other clients, or a client has one speak for it."""

_NO_METHOD: Final = "none"


def handle(broker: Broker, command: CommandConnect, request: PulsarRequest) -> None:
    """Let a client in once it has shown who it is; where the door asks for no login, credentials are not looked at.

    No client speaks for others (Apache Pulsar: `proxyRoles`).
    """
    connection = request.connection
    foreign = next((each for each in _FOR_PROXIES if command.HasField(each)), None)
    if foreign is not None:
        refuse(request, _NO_METHOD, f"it is to speak for another client, or to another broker ({foreign})")
    elif connection.login is None:
        _welcome(broker, command, request)
    else:
        request.in_steps(_log_in(broker, connection.login, command, request))


def _log_in(broker: Broker, login: Login, command: CommandConnect, request: PulsarRequest) -> Steps:
    assert broker.logins is not None
    login.understands_challenges = command.feature_flags.supports_auth_refresh
    method = _method(command)
    attempt = login.log_in(broker.logins, method, command.auth_data, request.principal)
    if (yield from carried_out(broker, request, method, attempt)):
        _welcome(broker, command, request)


def _method(command: CommandConnect) -> str:
    """Return the method by which the client logs in; older clients name it by a number."""
    if command.HasField("auth_method_name"):
        return command.auth_method_name
    if command.HasField("auth_method"):
        return AuthMethod.Name(command.auth_method).removeprefix("AuthMethod").lower()
    return _NO_METHOD


def _welcome(broker: Broker, command: CommandConnect, request: PulsarRequest) -> None:
    """Say what is offered.

    Topic watchers are not, so that clients ask for the topics of a namespace themselves.
    """
    request.connection.client_version = command.client_version[:LONGEST_VERSION] or "unknown"
    request.connection.consumers.takes_broker_entries = command.feature_flags.supports_broker_entry_metadata
    request.reply(
        CommandConnected(
            server_version=SERVER,
            protocol_version=min(command.protocol_version, PROTOCOL_VERSION),
            max_message_size=broker.configuration.pulsar_max_message_size,
            feature_flags=FeatureFlags(
                supports_auth_refresh=True,
                supports_broker_entry_metadata=True,
                supports_get_partitioned_metadata_without_auto_creation=True,
            ),
        )
    )


HANDLER = Handler(type=BaseCommand.CONNECT, needs=NEEDS, at_follower=SERVES, handle=handle, refused=no_answer)
