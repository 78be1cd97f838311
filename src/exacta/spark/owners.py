"""Name the Spark query that a transaction or a group belongs to, for operators, on any Kafka cluster.

This module owns the way from a transactional id, or from a group, to the query: both begin with the query's name on the
cluster, and under that name lies its decision record, which says who wrote it. A name that only looks like one of a
query has no such record.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from exacta.client.deadline import Deadline
from exacta.client.errors import KafkaError
from exacta.client.group_offsets import fetch_offsets
from exacta.client.routing import Client
from exacta.spark.sink.decision import Origin, UnreadableDecision, origin_of
from exacta.spark.sink.names import QueryNames

_TRANSACTIONAL_ID = re.compile(r"(.+?)-(?:driver|\d+-\d+)")
_GROUP = re.compile(r"(.+?)-(?:\d+|manifest(?:-\d+)?)")


class Owner(NamedTuple):
    """A Spark query, by its name on the cluster. `last_batch` is the last batch that was decided, or None."""

    name: str
    origin: Origin
    last_batch: int | None

    def __str__(self) -> str:
        """Return the query in words."""
        parts = [f"Spark query {self.origin.query_id}"]
        if self.origin.query_name:
            parts[0] = f"Spark query '{self.origin.query_name}' ({self.origin.query_id})"
        if self.origin.application:
            parts.append(f"application '{self.origin.application}'")
        parts.append(f"checkpoint {self.origin.location}")
        parts.append("no batch committed yet" if self.last_batch is None else f"last committed batch {self.last_batch}")
        return ", ".join(parts)


def owners_of_transactions(
    client: Client, transactional_ids: Iterable[str], deadline: Deadline | None = None
) -> dict[str, Owner]:
    """Return the Spark queries of those transactional ids that are of one."""
    return _owners(client, _TRANSACTIONAL_ID, transactional_ids, deadline)


def owners_of_groups(client: Client, groups: Iterable[str], deadline: Deadline | None = None) -> dict[str, Owner]:
    """Return the Spark queries of those groups that hold a query's replay markers and decisions."""
    groups = set(groups)
    # A name without that group has no record: it need not be asked for.
    with_record = {each for each in groups if (found := _GROUP.fullmatch(each)) and f"{found[1]}-manifest" in groups}
    return _owners(client, _GROUP, with_record, deadline)


def owner_of_group(client: Client, group: str) -> Owner | None:
    """Return the Spark query whose replay markers or decisions a group holds, None where it holds none."""
    return _owners(client, _GROUP, [group], None).get(group)


def _owners(
    client: Client, pattern: re.Pattern[str], found: Iterable[str], deadline: Deadline | None
) -> dict[str, Owner]:
    names = {each: match[1] for each in found if (match := pattern.fullmatch(each))}
    by_name = {name: _owner(client, name, deadline) for name in sorted(set(names.values()))}
    return {each: owner for each, name in names.items() if (owner := by_name[name]) is not None}


def _owner(client: Client, name: str, deadline: Deadline | None) -> Owner | None:
    try:
        heads = fetch_offsets(client, QueryNames(name).decision_group(0), deadline=deadline)
    except KafkaError:  # a user who may not read that group is not told
        return None
    for head in heads.values():
        try:
            origin = origin_of(head.metadata)
        except UnreadableDecision:
            continue
        return Owner(name, origin, head.offset if origin.decides else None)
    return None
