"""The questions of a test to a broker: the records of a topic and what became of them, transactions, groups, topics.

Owns the forms of the answers. The broker is asked as any client asks it, by `exacta.client`, so that a test sees what
is durable and shown, and nothing else.

Theory of operation. The fate of a transactional record is told by the next marker of its producer in the same
partition: a commit marker or an abort marker. A record without one is open, unless it lies below the last stable
offset: then it belongs to a sidecar topic, which has no markers and holds committed records only. A reader of committed
records gets the committed ones below the last stable offset.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Set
from enum import StrEnum
from typing import NamedTuple

from exacta.client.errors import KafkaError
from exacta.client.explanations import explain
from exacta.client.fetcher import fetch_range
from exacta.client.group_offsets import fetch_offsets
from exacta.client.handles import handle_named
from exacta.client.lag import describe_lag
from exacta.client.routing import Client
from exacta.client.security import Cluster
from exacta.client.tail import received_records
from exacta.client.topic_administration import CLUSTER_DEFAULT, add_topic
from exacta.client.topics import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.committed import is_abort_marker
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.records import BatchHeader, iter_batches
from exacta.readmodel.groups import Lag
from exacta.readmodel.transactions import Explanation

CLIENT_ID = "exacta-testing"
"""The client id of the kit's own requests, which meet no fault."""

_ISOLATIONS = ("committed", "uncommitted")
_LOOK_EVERY_S = 0.02


class Fate(StrEnum):
    """The end that a record came to."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


class Record(NamedTuple):
    """One record of a topic."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    fate: Fate


class NotRead(AssertionError):
    """A group has not read all that it could in the time that it was given."""


class Questions(ABC):
    """The questions that a test may ask a running broker. Every method blocks, and may be called from any thread.

    Each raises what `exacta.client` raises: ClientError where the broker cannot be reached, and KafkaError where it
    refuses.
    """

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """The address of the broker."""

    def records(self, topic: str, isolation: str = "committed", *, partition: int | None = None) -> list[Record]:
        """Return the records of a topic, by partition and offset; of one partition if it is named.

        With `isolation="committed"` these are the records that a consumer with `isolation.level=read_committed` would
        get now. With "uncommitted" all records are returned, and each tells its fate.

        Raises UnknownTopic where there is no such topic, ValueError for another isolation and for a partition that the
        topic does not have.
        """
        if isolation not in _ISOLATIONS:
            raise ValueError(f"isolation is one of {', '.join(_ISOLATIONS)}, not {isolation!r}")
        with self.client() as client:
            places = _partitions(client, topic)
            if partition is not None:
                if partition not in range(len(places)):
                    raise ValueError(f"topic '{topic}' has no partition {partition!r}: it has {len(places)}")
                places = [places[partition]]
            first = list_offsets(client, places, EARLIEST)
            stable = list_offsets(client, places, LATEST, isolation_level=READ_COMMITTED)
            ends = list_offsets(client, places, LATEST, isolation_level=READ_UNCOMMITTED)
            found = [record for at in places for record in _read(client, at, first[at], ends[at], stable[at])]
        if isolation == "uncommitted":
            return found
        return [
            each
            for each in found
            if each.fate is Fate.COMMITTED and each.offset < stable[TopicPartition(topic, each.partition)]
        ]

    def transactions(self) -> list[Explanation]:
        """Return all transactions that are open."""
        with self.client() as client:
            return explain(client)

    def explain(self, transactional_id: str) -> Explanation:
        """Return where a transactional id stands, and what happened to it and why.

        `state` is empty for an id that was forgotten while its incidents are remembered. The name of a transaction
        without a transactional id is taken as well, as `transactions` returns it. Raises KafkaError
        (TRANSACTIONAL_ID_NOT_FOUND) for an id that nobody knows.
        """
        handle = handle_named(transactional_id)
        with self.client() as client:
            (found,) = explain(client, [transactional_id]) if handle is None else explain(client, [], handles=[handle])
        if not found.state and not found.incidents:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"explaining '{transactional_id}'")
        return found

    def offsets(self, group: str) -> dict[TopicPartition, int]:
        """Return the offsets that a group has committed, by partition.

        The keys are equal to plain tuples: `{("orders", 0): 3}`. Raises KafkaError (GROUP_ID_NOT_FOUND) for a group
        that nobody knows.
        """
        with self.client() as client:
            found = {at: each.offset for at, each in fetch_offsets(client, group).items()}
            if not found:
                describe_lag(client, group)  # which knows whether there is such a group
            return found

    def lag(self, group: str) -> dict[TopicPartition, Lag]:
        """Return how far a group is behind, in records, by partition; and which open transactions hold it back.

        Raises KafkaError (GROUP_ID_NOT_FOUND) for a group that nobody knows.
        """
        with self.client() as client:
            return _by_partition(describe_lag(client, group).partitions)

    def create_topic(self, name: str, partitions: int | None = None, **configs: object) -> None:
        """Create a topic; configurations go by Kafka's names, with underscores (`cleanup_policy="compact"`).

        Without `partitions` it has as many as the broker's `num.partitions` says. Raises KafkaError where it exists, or
        where the broker refuses it.
        """
        written = {key.replace("_", "."): _config_value(value) for key, value in configs.items()}
        count = CLUSTER_DEFAULT if partitions is None else partitions
        with self.client() as client:
            add_topic(client, name, partitions=count, replication_factor=1, configs=written)

    def wait_until_read(self, group: str, timeout_s: float = 30.0, *, topics: Collection[str] = ()) -> None:
        """Wait until a group has committed offsets behind everything that it can read now.

        Looked at are the partitions of `topics`; by default those of the topics of which it has committed an offset,
        and there must be one. Raises NotRead after `timeout_s`.
        """
        names = {topics} if isinstance(topics, str) else set(topics)
        give_up_at = time.monotonic() + timeout_s
        with self.client() as client:
            while True:
                left = _left(client, group, names)
                if left == {}:
                    return
                if time.monotonic() >= give_up_at:
                    raise NotRead(_not_read(group, left, timeout_s))
                time.sleep(_LOOK_EVERY_S)

    def client(self) -> Client:
        """Return a client of the kit's own, which meets no fault; close it after use."""
        return Client(self._cluster())

    def _cluster(self) -> Cluster:
        """Return the broker, and how the kit's own client connects to it."""
        return Cluster(bootstrap=self.bootstrap_servers, client_id=CLIENT_ID)


def _partitions(client: Client, topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for index in range(client.partitions([topic])[topic])]


def _config_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- records ----------------------------------------------------------------------------------------------------------


def _read(client: Client, at: TopicPartition, first: int, end: int, stable: int) -> list[Record]:
    """Return the records of one partition from `first` up to `end`."""
    batches: list[tuple[BatchHeader, list[Record]]] = []
    markers: dict[int, list[tuple[int, Fate]]] = {}
    for fetched in fetch_range(client, at, first, end, isolation_level=READ_UNCOMMITTED):
        for header, batch in iter_batches(fetched.records):
            if header.control:
                fate = Fate.ABORTED if is_abort_marker(batch) else Fate.COMMITTED
                markers.setdefault(header.producer_id, []).append((header.base_offset, fate))
            else:
                batches.append((header, list(_records_of(at, header, batch))))
    found: list[Record] = []
    for header, records in batches:
        fate = _fate(header, markers.get(header.producer_id, []), stable)
        found += [each._replace(fate=fate) for each in records if first <= each.offset < end]
    return found


def _fate(header: BatchHeader, markers: list[tuple[int, Fate]], stable: int) -> Fate:
    if not header.transactional:
        return Fate.COMMITTED
    for offset, fate in markers:
        if offset > header.base_offset:
            return fate
    return Fate.COMMITTED if header.last_offset < stable else Fate.OPEN


def _records_of(at: TopicPartition, header: BatchHeader, batch: memoryview) -> Iterator[Record]:
    for each in received_records(at, header, batch):
        headers = tuple((name.decode(errors="surrogateescape"), content) for name, content in each.headers)
        yield Record(*at, each.offset, each.timestamp_ms, each.key, each.value, headers, Fate.OPEN)


# --- groups -----------------------------------------------------------------------------------------------------------


def _by_partition(found: Iterable[Lag]) -> dict[TopicPartition, Lag]:
    return {TopicPartition(each.topic, each.partition): each for each in found}


def _left(client: Client, group: str, topics: Set[str]) -> dict[TopicPartition, int] | None:
    """Return how many records a group has not read, by partition; None: it has committed nothing yet."""
    try:
        known = _by_partition(describe_lag(client, group).partitions)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        known = {}
    positions = {at: each for at, each in known.items() if each.committed_offset is not None}
    names = topics or {at.topic for at in positions}
    if not names:
        return None
    left = {at: each.unread for at, each in positions.items() if at.topic in names and each.unread}
    others = [at for name in sorted(names) for at in _partitions(client, name) if at not in positions]
    if others:
        first = list_offsets(client, others, EARLIEST)
        ends = list_offsets(client, others, LATEST, isolation_level=READ_COMMITTED)
        left.update({at: ends[at] - first[at] for at in others if ends[at] > first[at]})
    return left


def _not_read(group: str, left: dict[TopicPartition, int] | None, timeout_s: float) -> str:
    if left is None:
        return f"group '{group}' has committed no offset in {timeout_s:g} s"
    rest = ", ".join(f"{count} in {at}" for at, count in sorted(left.items()))
    return f"group '{group}' has not read everything in {timeout_s:g} s: {rest} left"
