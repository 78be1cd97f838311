"""END_TXN commits or aborts a transaction, durably and everywhere at once (decision 0027)."""

from google.protobuf.message import Message

from exacta.core.commands import EndHandle
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.front.transaction_rights import lacking_for
from exacta.ports.log import Answer
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandEndTxn,
    CommandEndTxnResponse,
    ServerError,
    TxnAction,
)
from exacta.protocol.pulsar.transaction_ids import txn_id
from exacta.pulsar.at_follower import NO_COORDINATOR
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import OPEN_TO_ALL
from exacta.pulsar.transactions import is_strict, named_again, transaction_of

NEEDS = OPEN_TO_ALL
"""Nothing that the command names: `lacking_for` asks for what the transaction holds."""


def handle(broker: Broker, command: CommandEndTxn, request: PulsarRequest) -> None:
    """Answer when the outcome is durable."""
    transaction_id = transaction_of(txn_id(command))
    if transaction_id is None:
        request.reject(Rejection.TRANSACTION_NOT_FOUND)
        return
    lack = lacking_for(broker, request, transaction_id)
    if lack is not None:
        request.refuse(ServerError.AuthorizationError, lack)
        return

    def done(answer: Answer) -> None:
        if isinstance(answer, Rejection):
            request.reject(answer)
        else:
            request.shared.announced.forget(transaction_id)
            request.reply(_answer(command))

    broker.ask(
        request,
        EndHandle(
            transaction_id=transaction_id,
            commit=command.txn_action == TxnAction.COMMIT,
            strict=is_strict(broker),
            client_id=request.connection.client_version,
            client_host=request.client_host,
        ),
        done,
    )


def _answer(command: CommandEndTxn) -> CommandEndTxnResponse:
    return CommandEndTxnResponse(**named_again(command))


def refused(command: CommandEndTxn, error: ServerError, text: str) -> Message:
    """Refuse to end it."""
    answer = _answer(command)
    answer.error, answer.message = error, text
    return answer


HANDLER = Handler(type=BaseCommand.END_TXN, needs=NEEDS, at_follower=NO_COORDINATOR, handle=handle, refused=refused)
