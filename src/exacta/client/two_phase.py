"""The calls of a producer whose transactions another system decides (KIP-939), one function each.

This module owns the shapes of these calls. They are of newer versions than all others of this client, which speak
version 1 of the transaction protocol: InitProducerId 6 is the first with two-phase commits, and EndTxn 5 the first that
gives a new epoch with each end. So a producer's pair names one transaction, and the next one needs no other request.

Every function may be repeated without harm, and repeats itself until its deadline.
"""

from typing import NamedTuple

from exacta.client.deadline import Deadline
from exacta.client.errors import FENCED, ClientError, KafkaError
from exacta.client.routing import TRANSACTION, Client, Coordinator
from exacta.client.transactions import NO_TIMEOUT_MS, Producer, end_txn_request
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest

_INIT_PRODUCER_ID = 6
_END_TXN = 5
_NOBODY = -1


class NoTwoPhaseCommits(ClientError):
    """The coordinator of a transactional id does not take part in two-phase commits."""


class Taken(NamedTuple):
    """A transactional id in our hands; and the pair of the transaction that its predecessor has left open, if any."""

    producer: Producer
    left_open: tuple[int, int] | None


def take_over(
    client: Client, transactional_id: str, *, expected: Producer | None = None, deadline: Deadline | None = None
) -> Taken:
    """Take over a transactional id: fence its predecessor, and keep what it left open.

    What is kept can only be ended, by the new incarnation. With `expected` the id is taken over only from that
    incarnation (KIP-360). If there is another one by now, the call raises a fenced `KafkaError`. Raises
    `NoTwoPhaseCommits`.
    """
    deadline = deadline or client.deadline()
    route = Coordinator(TRANSACTION, transactional_id)
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=NO_TIMEOUT_MS,
        producer_id=_NOBODY if expected is None else expected.producer_id,
        producer_epoch=_NOBODY if expected is None else expected.producer_epoch,
        enable_2pc=True,
        keep_prepared_txn=True,
    )
    if not client.offers(route, request, deadline, version=_INIT_PRODUCER_ID):
        raise _none_here(client)
    try:
        response = client.call(
            route,
            request,
            what=f"taking over transactional id '{transactional_id}'",
            codes=lambda reply: (reply.error_code,),
            # An older incarnation's request that is still on its way can meet ours; the next try wins.
            also_retry=FENCED if expected is None else frozenset(),
            deadline=deadline,
            version=_INIT_PRODUCER_ID,
        )
    except KafkaError as error:
        # Apache Kafka 4.4 says so even where it offers that version: it cannot keep a transaction yet.
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            raise _none_here(client) from error
        raise
    left_open = (response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
    return Taken(
        Producer(transactional_id, response.producer_id, response.producer_epoch),
        None if left_open[0] == _NOBODY else left_open,
    )


def _none_here(client: Client) -> NoTwoPhaseCommits:
    return NoTwoPhaseCommits(
        f"{client.bootstrap} takes no part in two-phase commits (KIP-939); "
        "on an Exacta set transaction.two.phase.commit.enable=true"
    )


def end_transaction(client: Client, producer: Producer, *, commit: bool, deadline: Deadline | None = None) -> Producer:
    """Commit or abort the transaction that `producer` has open or has kept; return the producer of the next one.

    Raises `KafkaError`: fenced or INVALID_TXN_STATE both mean "not by this request", and never tell whether an earlier
    one did.
    """
    response = client.call(
        Coordinator(TRANSACTION, producer.transactional_id),
        end_txn_request(producer, commit=commit),
        what=f"{'committing' if commit else 'aborting'} the transaction of '{producer.transactional_id}'",
        codes=lambda reply: (reply.error_code,),
        deadline=deadline,
        version=_END_TXN,
    )
    return Producer(producer.transactional_id, response.producer_id, response.producer_epoch)
