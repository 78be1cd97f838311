"""NEW_TXN begins a transaction: a handle, which everybody may use who knows its id (decision 0027)."""

from google.protobuf.message import Message

from exacta.core.commands import BeginTransaction
from exacta.core.rejections import Rejection
from exacta.core.replies import TransactionBegunReply
from exacta.front.broker import Broker
from exacta.ports.log import Answer
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandNewTxn, CommandNewTxnResponse, ServerError
from exacta.pulsar.at_follower import NO_COORDINATOR
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import OPEN_TO_ALL
from exacta.pulsar.transactions import COORDINATOR_NUMBER

NEEDS = OPEN_TO_ALL
"""Nothing: what a transaction writes to is asked for when it is added."""


def handle(broker: Broker, command: CommandNewTxn, request: PulsarRequest) -> None:
    """Answer with the id; beyond the core's limits with an error, where Apache Pulsar does not answer at all."""
    if command.tc_id != COORDINATOR_NUMBER:
        request.refuse(ServerError.TransactionCoordinatorNotFound, f"there is no coordinator {command.tc_id}")
        return

    def done(answer: Answer) -> None:
        if isinstance(answer, TransactionBegunReply):
            request.connection.has_begun(answer.transaction_id)
            request.reply(
                CommandNewTxnResponse(
                    request_id=command.request_id,
                    txnid_most_bits=COORDINATOR_NUMBER,
                    txnid_least_bits=answer.transaction_id,
                )
            )
        else:
            assert isinstance(answer, Rejection)
            request.reject(answer)

    broker.ask(
        request,
        BeginTransaction(
            timeout_ms=command.txn_ttl_millis,
            client_id=request.connection.client_version,
            client_host=request.client_host,
            principal=request.principal.durable_name,
        ),
        done,
    )


def refused(command: CommandNewTxn, error: ServerError, text: str) -> Message:
    """Refuse to begin one."""
    return CommandNewTxnResponse(
        request_id=command.request_id, txnid_most_bits=COORDINATOR_NUMBER, error=error, message=text
    )


HANDLER = Handler(type=BaseCommand.NEW_TXN, needs=NEEDS, at_follower=NO_COORDINATOR, handle=handle, refused=refused)
