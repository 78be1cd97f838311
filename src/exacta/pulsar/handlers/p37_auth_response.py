"""AUTH_RESPONSE answers AUTH_CHALLENGE: the client shows once more who it is, before what it has shown ends."""

from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandAuthResponse
from exacta.pulsar.at_follower import SERVES
from exacta.pulsar.context import Handler, PulsarRequest, no_answer
from exacta.pulsar.logging_in import carried_out
from exacta.pulsar.login import Login, Phase
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL


def handle(broker: Broker, command: CommandAuthResponse, request: PulsarRequest) -> None:
    """Let the client go on, and tell it nothing, as Apache Pulsar; one that was not asked loses its connection."""
    login = request.connection.login
    if login is None or login.phase is not Phase.ASKED:
        request.hang_up("AUTH_RESPONSE came unasked")
    else:
        request.in_steps(_log_in(broker, login, command, request))


def _log_in(broker: Broker, login: Login, command: CommandAuthResponse, request: PulsarRequest) -> Steps:
    assert broker.logins is not None
    method = command.response.auth_method_name
    attempt = login.log_in_once_more(broker.logins, method, command.response.auth_data, request.principal)
    if (yield from carried_out(broker, request, method, attempt)):
        request.end()


HANDLER = Handler(type=BaseCommand.AUTH_RESPONSE, needs=NEEDS, at_follower=SERVES, handle=handle, refused=no_answer)
