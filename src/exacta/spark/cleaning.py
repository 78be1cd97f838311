"""Remove what a query has left on a cluster, once it will not run again.

This module owns the order of the steps. The steps themselves are the sink's own (`protocol.py`, `incarnations.py`). It
prints nothing.

Theory of operation. The cleaner acts as the query's last driver. It takes the driver's transactional id over, so that
no other driver decides anything from there on. It finishes what was decided and aborts the rest, as any driver does
that begins. Then nothing is open, and it deletes the groups. The decision record goes first: without it the markers
mean nothing, so a cleaning that was cut short can be begun again. Kafka's protocol deletes no transactional ids;
nothing is open under them, and Apache Kafka forgets them after a week.

A cluster cannot tell whether a query lives; a driver between two batches is silent. Only movement can be seen: each
batch takes the driver's id over once more. So the query is watched for a while, and is alive if anything moves.
"""

import time
from collections.abc import Callable, Iterable

from msgspec import Struct

from exacta.client.deadline import Deadline
from exacta.client.group_administration import delete_group, list_groups
from exacta.client.group_offsets import fetch_offsets
from exacta.client.routing import Client
from exacta.client.transactions import (
    TransactionDescription,
    describe_transactions,
    init_producer_id,
    list_transactions,
)
from exacta.spark.sink.decision import origin_of, pieces_of
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.incarnations import Sweeper
from exacta.spark.sink.lost_markers import settle_all
from exacta.spark.sink.names import QueryNames
from exacta.spark.sink.protocol import SinkDriver

_LOOK_EVERY_S = 0.5
_TRANSACTION_TIMEOUT_MS = 60_000


class StillRunning(SinkError):
    """The query moves."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"query {name} is running: its transactions change while they are looked at; end it first, and wait until "
            "it has ended"
        )


class Leftovers(Struct, frozen=True, kw_only=True):
    """The transactions and groups that a query has on a cluster."""

    name: str
    transactions: dict[str, TransactionDescription]  # by transactional id
    groups: tuple[str, ...]

    @property
    def open_transactions(self) -> list[str]:
        """Return the transactional ids with an open transaction."""
        return sorted(each for each, state in self.transactions.items() if state.is_open)

    @property
    def nothing(self) -> bool:
        """Return whether there is nothing to clean. Ids under which nothing is open are harmless, and expire."""
        return not self.groups and not self.open_transactions


class Cleaned(Struct, frozen=True, kw_only=True):
    """The outcome of `clean`."""

    last_batch: int | None  # None: no batch was ever decided, or it timed out whole
    torn: bool  # of that batch only a part could be committed; the rest had timed out before
    groups: tuple[str, ...]  # deleted


def find(client: Client, name: str) -> Leftovers:
    """Return what a query has left, or has just now if it is running."""
    names = QueryNames(name)
    listed = list_transactions(client, names.prefix, states=())
    mine = [each for each in listed if each == names.driver or names.is_attempt(each)]
    states = describe_transactions(client, mine) if mine else {}
    return Leftovers(
        name=name,
        transactions={each: state for each, state in sorted(states.items()) if state is not None},
        groups=tuple(group for group in list_groups(client, names.prefix) if names.is_group(group)),
    )


def further_sinks(client: Client, name: str) -> list[str]:
    """Return the names of further sinks that a query has or had, by what `exacta.spark.write` calls them."""
    names, prefix = QueryNames(name), f"{name}."
    found = [*list_transactions(client, prefix, states=()), *list_groups(client, prefix)]
    return sorted({sink for each in found if (sink := names.sink_in(each)) is not None})


def jobs(client: Client, prefix: str) -> list[str]:
    """Return the names of batch jobs of a prefix that have something open or groups left."""
    names = QueryNames(prefix)
    found = [*list_transactions(client, names.prefix), *list_groups(client, names.prefix)]
    return sorted({job for each in found if (job := names.job_in(each)) is not None})


def watch(client: Client, name: str, seconds: float, pause: Callable[[float], None] = time.sleep) -> Leftovers:
    """Return what a query has left, after watching it for so long; raises `StillRunning` where something moves."""
    before = find(client, name)
    for _ in range(max(1, round(seconds / _LOOK_EVERY_S))):
        if before.nothing:
            break
        pause(_LOOK_EVERY_S)
        if find(client, name) != before:
            raise StillRunning(name)
    return before


def clean(client: Client, name: str) -> Cleaned:
    """Finish or abort what a query left open, fence it, and delete its groups.

    Raises `KafkaError`, NON_EMPTY_GROUP where a group of that name has members.
    """
    names = QueryNames(name)
    settle_all(client, names)
    driver = init_producer_id(client, names.driver, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS)
    heads = fetch_offsets(client, names.decision_group(0), stable=True)
    last_batch, torn = -1, False
    if heads:
        # There is one, unless somebody has committed offsets to the group by hand.
        at, head = max(heads.items(), key=lambda entry: entry[1].offset)
        origin = origin_of(head.metadata)
        prepared = SinkDriver(
            client,
            name,
            query_id=origin.query_id,
            location=origin.location,
            marker=at,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            replay_deterministic=True,  # a torn batch is told of, not refused: nothing more can be done about it
        ).prepare()
        last_batch, torn = prepared.decided_batch, prepared.committed_tasks is not None
    else:
        Sweeper(client, names, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS).sweep(driver)
    # Seen after the roll-forward: there may be groups that only an open transaction knew of.
    groups = sorted(
        (group for group in list_groups(client, names.prefix) if names.is_group(group)),
        key=lambda group: (group != names.decision_group(0), not names.is_decision_group(group), group),
    )
    deleted = _delete(client, groups)
    return Cleaned(last_batch=None if last_batch < 0 else last_batch, torn=torn, groups=deleted)


def forget(client: Client, name: str, tasks: Iterable[int], deadline: Deadline) -> None:
    """Delete the groups of a batch job that is committed, and in which these tasks wrote transactions of their own.

    Raises what the client raises, for example if the user may not delete groups.
    """
    names = QueryNames(name)
    heads = fetch_offsets(client, names.decision_group(0), stable=True, deadline=deadline)
    pieces = max((pieces_of(head.metadata) for head in heads.values()), default=0)
    groups = [names.decision_group(piece) for piece in range(max(1, pieces))]
    _delete(client, [*groups, *(names.marker_group(task) for task in tasks)], deadline)


def _delete(client: Client, groups: Iterable[str], deadline: Deadline | None = None) -> tuple[str, ...]:
    deleted = []
    for group in groups:
        # Apache Kafka ends transactions in groups a moment later; a group that went before would come back.
        fetch_offsets(client, group, stable=True, deadline=deadline)
        if delete_group(client, group, deadline):
            deleted.append(group)
    return tuple(deleted)
