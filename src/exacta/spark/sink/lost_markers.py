"""End a query's transactions where a broker has not ended them, although it said that it had.

This module owns the moments at which the sink looks for such transactions. `client/lost_markers.py` says how they come
about, and writes the markers.

Theory of operation. The sink looks if something is not final that should be: a decision record that is pending when a
driver begins or aborts, or a replay marker whose transaction was ended just now. The coordinator knows how a
transaction had ended until the id is used again. So this comes *before* a driver's id is taken over. If it fails, the
take-over fails too, and the next one finds everything as it was. Transactions that older drivers have open are aborted
first, as taking over would, since only the end of an ended transaction can be told.

The sink does *not* look for lost markers of rows alone: of a transaction that was aborted before its marker, or whose
group has its marker. Topics with replicas lose none.
"""

import logging
from collections.abc import Collection

from exacta.client.errors import KafkaError
from exacta.client.lost_markers import once_ended, write_lost_markers
from exacta.client.routing import Client
from exacta.client.transactions import Producer, describe_transaction, end_transaction, list_transactions
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark.sink.incarnations import incarnation_of
from exacta.spark.sink.names import QueryNames
from exacta.spark.sink.query_records import QueryRecords

logger = logging.getLogger("exacta.spark")


def settle(client: Client, names: QueryNames, records: QueryRecords, driver: Producer | None = None) -> None:
    """Abort what `driver` has open and end it on every partition, because a decision is pending.

    Without `driver`, the incarnation that holds the driver's id now is meant.

    If all is in order, the call only waits until what is being ended has ended.
    """
    if driver is None:
        state = describe_transaction(client, names.driver)
        driver = None if state is None else incarnation_of(names.driver, state)
    if driver is not None:
        try:
            end_transaction(client, driver, commit=False)
        except KafkaError as error:
            if not error.fenced and error.code != ErrorCode.INVALID_TXN_STATE:  # nothing is open
                raise
    once_ended(client, [names.driver])
    if records.heads().pending:
        settle_all(client, names)


def settle_all(client: Client, names: QueryNames) -> None:
    """Have all of a query's transactions ended everywhere, as far as they are ended at all."""
    # The driver's id by name: a broker that has just started lists nothing before it has read its transactions, and
    # says so only of an id that it is asked for.
    settle_ended(client, sorted({names.driver, *list_transactions(client, names.prefix, states=())}))


def settle_ended(client: Client, transactional_ids: Collection[str]) -> None:
    """Have the transactions of these ids ended everywhere, as far as they are ended at all."""
    lost = write_lost_markers(client, transactional_ids)
    if lost:
        logger.warning(
            "%s lost markers of transactions that it had ended (a broker died just then, without replicas): written "
            "for %s",
            client.bootstrap,
            ", ".join(f"{each} ({state.state})" for each, state in sorted(lost.items())),
        )
