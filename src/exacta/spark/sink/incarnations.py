"""Find who holds a transactional id now, and end an outdated holder without harm to a newer one.

The module owns fencing: it takes the place of one incarnation (producer id and epoch), and *sweeps* what a query's
attempts left open. It does not know when to sweep.

Theory of operation. A driver may be a zombie without knowing it, and between asking whether it is and acting a newer
one may begin. So nothing is fenced by its name alone, except by a driver that takes over. First the incarnations are
read, then the broker is asked whether this driver is still the last one, then exactly these incarnations are fenced. An
id that a newer driver's task takes in the meantime has another epoch, so the broker refuses to fence it.
"""

import logging
from collections.abc import Collection, Iterable, Iterator

from exacta.client.deadline import Deadline
from exacta.client.errors import KafkaError
from exacta.client.routing import Client
from exacta.client.transactions import (
    EMPTY,
    ONGOING,
    Producer,
    TransactionDescription,
    describe_transaction,
    describe_transactions,
    end_transaction,
    init_producer_id,
    list_transactions,
)
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.messages import Written
from exacta.spark.sink.names import QueryNames, shown_ids

logger = logging.getLogger("exacta.spark")

_fenced: dict[str, Producer] = {}
"""The producers that hold attempts' ids since this process fenced these. None of them can open a transaction."""


def take_over(client: Client, transactional_id: str, *, transaction_timeout_ms: int) -> Producer:
    """Take a transactional id over from any holder; raises `SinkError` where the brokers refuse the time-out."""
    try:
        return init_producer_id(client, transactional_id, transaction_timeout_ms=transaction_timeout_ms)
    except KafkaError as error:
        if error.code != ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise
        raise SinkError(too_long(transaction_timeout_ms)) from error


def too_long(transaction_timeout_ms: int) -> str:
    """Return the sentence for a time-out of transactions that the brokers refuse."""
    return (
        f"the brokers allow no transaction of {transaction_timeout_ms} ms: lower option "
        "'kafka.transaction.timeout.ms' to their 'transaction.max.timeout.ms', or raise that"
    )


def incarnation_of(transactional_id: str, state: TransactionDescription) -> Producer:
    """Return the incarnation that holds a transactional id, from its description."""
    return Producer(transactional_id, state.producer_id, state.producer_epoch)


def holds(producer: Producer, state: TransactionDescription | None) -> bool:
    """Return whether an incarnation is the one that a description of its transactional id tells of."""
    return state is not None and incarnation_of(producer.transactional_id, state) == producer


def is_current(client: Client, producer: Producer, deadline: Deadline | None = None) -> bool:
    """Return whether an incarnation is the last one of its transactional id.

    For a driver: whether it still has the query.
    """
    return holds(producer, describe_transaction(client, producer.transactional_id, deadline))


def supersede(
    client: Client, producer: Producer, *, transaction_timeout_ms: int, deadline: Deadline | None = None
) -> Producer | None:
    """Abort what an incarnation has open and take its place; return the new one, or None where there is a newer one.

    The abort must not hit a newer incarnation, so it goes by EndTxn, which every broker refuses from an older one.
    Apache Kafka grants InitProducerId to an older incarnation while the newer one has a transaction open, and aborts
    that (tried on 4.4). So this function looks in between.
    """
    try:
        try:
            end_transaction(client, producer, commit=False, deadline=deadline)
        except KafkaError as error:
            if error.code != ErrorCode.INVALID_TXN_STATE:  # nothing is open
                raise
        if not is_current(client, producer, deadline):
            return None
        return init_producer_id(
            client,
            producer.transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            expected=producer,
            deadline=deadline,
        )
    except KafkaError as error:
        if error.fenced:
            return None
        raise


def first_not_open(client: Client, written: Written) -> Producer | None:
    """Return the first producer whose transaction is not open any more, or None.

    A transaction that lacks a partition which its task wrote to does not count as open. It is of the same incarnation,
    but began after the task's own transaction was ended (by an operator's tool, say), and most of the rows were in that
    one.
    """
    found = describe_transactions(client, [producer.transactional_id for producer in written])
    for producer, partitions in written.items():
        state = found[producer.transactional_id]
        if (
            state is None
            or not state.is_open
            or not holds(producer, state)
            or not state.partitions.issuperset(partitions)
        ):
            return producer
    return None


class Sweeper:
    """Ends what attempts of one query left open."""

    def __init__(self, client: Client, names: QueryNames, *, transaction_timeout_ms: int) -> None:
        self._client = client
        self._names = names
        self._transaction_timeout_ms = transaction_timeout_ms

    def sweep(
        self, driver: Producer, *, protected: Collection[Producer] = (), silent: Iterable[int] = ()
    ) -> list[Producer]:
        """Abort and fence the query's attempts with an open transaction, except `protected` ones; return those fenced.

        The same happens to attempts that have taken their id and may yet open a transaction, and to the attempts of
        `silent` tasks in any state. Nothing is done if `driver` is not the last one any more.
        """
        listed = list_transactions(self._client, self._names.prefix, states=(ONGOING, EMPTY))
        found = set(self._holders([each for each in listed if self._names.is_attempt(each)]))
        found.difference_update(_fenced.values())
        for task in silent:
            found.update(self.silent_attempts(task))
        outdated = sorted(found.difference(protected))
        # In this order: what is listed above is no newer driver's if there is none now.
        if not outdated or not is_current(self._client, driver):
            return []
        for producer in outdated:
            self.fence(producer)
        ids = [producer.transactional_id for producer in outdated]
        logger.warning("aborted what lost attempts had left open, or might yet open: %s", shown_ids(ids))
        return outdated

    def silent_attempts(self, task: int) -> Iterator[Producer]:
        """Yield the attempts of a task that said nothing, since they may be about to open a transaction."""
        listed = list_transactions(self._client, self._names.attempts(task), states=())
        yield from self._holders([each for each in listed if self._names.is_attempt(each, task)])

    def fence(self, producer: Producer) -> None:
        """Abort what an incarnation has open and end it. Do nothing if there is a newer one."""
        successor = supersede(self._client, producer, transaction_timeout_ms=self._transaction_timeout_ms)
        if successor is not None:
            _fenced[producer.transactional_id] = successor

    def _holders(self, transactional_ids: list[str]) -> Iterator[Producer]:
        if not transactional_ids:
            return
        for transactional_id, state in describe_transactions(self._client, transactional_ids).items():
            if state is not None:
                yield incarnation_of(transactional_id, state)
