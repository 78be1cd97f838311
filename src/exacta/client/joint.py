"""Joint transactions: one transaction of a Kafka producer and of Apache Pulsar's clients, on an Exacta (decision 0038).

The module owns the request, and what its refusals mean to the one who asks. Its only caller outside of the package is
`exacta.join_transaction`.
"""

from exacta.client.deadline import Deadline
from exacta.client.errors import ClientError, KafkaError
from exacta.client.handles import handle_name
from exacta.client.routing import TRANSACTION, Client, Coordinator
from exacta.client.security import Cluster
from exacta.client.transactions import Producer, describe_transaction
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17790_join_transaction import JoinTransactionRequest

COORDINATOR_NUMBER = 0
"""The first number of every TxnID that an Exacta gives: it has one coordinator of Pulsar's transactions."""


class NotJoined(ClientError):
    """A transaction cannot be joined. The message is one sentence that says why, and what to do."""


def join_transaction(
    cluster: Cluster | str,
    transactional_id: str,
    transaction: tuple[int, int] | None = None,
    *,
    call_timeout_ms: float = 60_000,
) -> tuple[int, int]:
    """Let one transaction span a Kafka producer and Apache Pulsar's clients; return the two numbers of its TxnID.

    `transaction` has the two numbers of the TxnID of a transaction that a Pulsar client has begun. It must be
    open, and the producer of `transactional_id` must have none open. It keeps its own time-out. Without `transaction`,
    the one is joined that the producer has open. The producer must have written a record or sent offsets, and flushed.
    Either side may write into the transaction and end it; docs/explanation/one-log.md says what the other side is told.

    Raises `NotJoined`, in one sentence, and any other `ClientError` where the cluster does not answer.
    """
    with Client(cluster, call_timeout_ms=call_timeout_ms) as client:
        return COORDINATOR_NUMBER, join(client, transactional_id, transaction)


def join(
    client: Client,
    transactional_id: str,
    transaction: tuple[int, int] | None = None,
    *,
    producer: Producer | None = None,
    deadline: Deadline | None = None,
) -> int:
    """Join a transaction by a transactional id: as `producer`, or as the holder of the id at present.

    See `join_transaction`. Returns the transaction's id, which is the second number of its TxnID.
    """
    deadline = deadline or client.deadline()
    named = -1 if transaction is None else _id_of(transaction)
    if producer is None:
        found = describe_transaction(client, transactional_id, deadline)
        if found is None:
            raise NotJoined(f"nothing is known of transactional id '{transactional_id}': initialise its producer first")
        producer = Producer(transactional_id, found.producer_id, found.producer_epoch)
    request = JoinTransactionRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_id=named,
    )
    try:
        reply = client.call(
            Coordinator(TRANSACTION, transactional_id),
            request,
            what=f"joining the transaction of '{transactional_id}'",
            codes=lambda reply: (reply.error_code,),
            deadline=deadline,
            # Its own transaction does not end while its one caller waits here.
            never_retry=frozenset({ErrorCode.CONCURRENT_TRANSACTIONS}),
        )
    except KafkaError as error:
        why = _refusal(error.code, transactional_id, named)
        if why is None:
            raise
        raise NotJoined(why) from error
    transaction_id: int = reply.transaction_id
    return transaction_id


def _id_of(transaction: tuple[int, int]) -> int:
    coordinator, transaction_id = transaction
    if coordinator != COORDINATOR_NUMBER or not 0 <= transaction_id < 2**63:
        raise NotJoined(f"there is no transaction TxnID({coordinator},{transaction_id})")
    return transaction_id


def _refusal(code: int, transactional_id: str, named: int) -> str | None:
    """Return the meaning of a code for the one who asked; None: the code has no further one here."""
    name = handle_name(named)
    if code == ErrorCode.INVALID_TXN_STATE and named < 0:
        return (
            f"transactional id '{transactional_id}' has no transaction open on the broker: "
            "write a record, or send offsets, and flush first"
        )
    if code == ErrorCode.INVALID_TXN_STATE:
        return (
            f"transaction {name} cannot be joined by '{transactional_id}': it has ended, or another transactional id "
            "has joined it, or this one takes part in two-phase commits"
        )
    if code == ErrorCode.CONCURRENT_TRANSACTIONS:
        return f"transactional id '{transactional_id}' has another transaction open: end that first"
    if code == ErrorCode.TRANSACTION_ABORTABLE:
        return f"the last transaction of '{transactional_id}' was ended by its TxnID: abort it by its producer first"
    if code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return f"there is no transaction {name}, or it has ended too long ago"
    return None
