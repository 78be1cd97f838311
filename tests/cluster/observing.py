"""Ask each broker directly, all the time, and judge its answers together with those of all other brokers.

A *stale read*: an offset that a broker tells lies behind one that any broker had told before this one was asked.
ListOffsets and OffsetFetch are judged so. A follower refuses both; a leader that was replaced must not answer.

A *fractured read*: one answer to a Fetch shows a part of a transaction. It is judged by the last stable offsets of one
answer, on topics that transactions enter whole and at one moment.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from exacta.client.connection import Connection
from exacta.client.deadline import Deadline
from exacta.client.errors import ClientError
from exacta.client.security import Cluster
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from exacta.protocol.kafka.messages.k09_offset_fetch import OffsetFetchRequest
from exacta.protocol.kafka.schema import Message
from exacta.verify.analysis.ledger import Ledger, Place
from exacta.verify.history import Isolation

CALL_MS = 40_000.0
"""A call returns within this time: the longest pause is shorter."""
_PAUSE_S = 0.05
_LATEST = -1
_FETCH_BY_NAME = 12


class Answer(NamedTuple):
    """The offsets that one answer of one broker told of partitions; `kind` says what they are."""

    node_id: int
    kind: str
    start_us: int
    end_us: int
    offsets: Mapping[Place, int]


class Observer:
    """Asks one broker for as long as it runs."""

    def __init__(self, node_id: int, address: str, topics: Mapping[str, int], group: str | None, epoch_ns: int) -> None:
        self.answers: list[Answer] = []
        self.refused = 0
        self._node_id = node_id
        self._address = address
        self._topics = topics
        self._group = group
        self._epoch_ns = epoch_ns
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"observer of {node_id}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ask no more."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        host, _, port = self._address.partition(":")
        while not self._ended.wait(_PAUSE_S):
            try:
                connection = Connection(host, int(port), cluster=Cluster(bootstrap=self._address), deadline=_deadline())
            except ClientError:
                continue
            try:
                while not self._ended.wait(_PAUSE_S):
                    self._ask(connection)
            except ClientError:
                continue
            finally:
                connection.close()

    def _now_us(self) -> int:
        return (time.monotonic_ns() - self._epoch_ns) // 1000

    def _ask(self, connection: Connection) -> None:
        for kind, level in (("stable", 1), ("high", 0)):
            self._take(kind, connection, self._list_offsets(level), _listed)
        if self._group is not None:
            self._take("group", connection, OffsetFetchRequest(group_id=self._group, topics=None), _committed)
        self._take("fetched", connection, self._fetch(), _fetched, version=_FETCH_BY_NAME)

    def _take(self, kind: str, connection: Connection, request: Message, read: Any, version: int | None = None) -> None:
        start_us = self._now_us()
        reply = connection.call(request, _deadline(), version=version)
        offsets = dict(read(reply))
        if offsets:
            self.answers.append(Answer(self._node_id, kind, start_us, self._now_us(), offsets))
        else:
            self.refused += 1

    def _list_offsets(self, level: int) -> ListOffsetsRequest:
        topics = [
            ListOffsetsTopic(
                name=topic,
                partitions=[ListOffsetsPartition(partition_index=each, timestamp=_LATEST) for each in range(count)],
            )
            for topic, count in self._topics.items()
        ]
        return ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=topics)

    def _fetch(self) -> FetchRequest:
        topics = [
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1) for each in range(count)
                ],
            )
            for topic, count in self._topics.items()
        ]
        return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, isolation_level=1, topics=topics)


def _deadline() -> Deadline:
    return Deadline(CALL_MS)


def _listed(reply: Any) -> Iterator[tuple[Place, int]]:
    for topic in reply.topics:
        for each in topic.partitions:
            if not each.error_code:
                yield (topic.name, each.partition_index), each.offset


def _committed(reply: Any) -> Iterator[tuple[Place, int]]:
    for topic in () if reply.error_code else reply.topics:
        for each in topic.partitions:
            if not each.error_code:
                yield (topic.name, each.partition_index), each.committed_offset


def _fetched(reply: Any) -> Iterator[tuple[Place, int]]:
    for topic in reply.responses:
        for each in topic.partitions:
            if not each.error_code:
                yield (topic.topic, each.partition_index), each.last_stable_offset


def stale_reads(answers: Iterable[Answer]) -> list[str]:
    """Return what is told of each stale read. A follower's answers to a Fetch may be behind the leader's."""
    found = []
    judged = [each for each in answers if each.kind != "fetched"]
    by_end = iter(sorted(judged, key=lambda each: each.end_us))
    highest: dict[tuple[str, Place], tuple[int, Answer]] = {}
    earlier = next(by_end, None)
    for answer in sorted(judged, key=lambda each: each.start_us):
        while earlier is not None and earlier.end_us < answer.start_us:
            for place, offset in earlier.offsets.items():
                if offset > highest.get((earlier.kind, place), (-2, earlier))[0]:
                    highest[earlier.kind, place] = offset, earlier
            earlier = next(by_end, None)
        for place, offset in answer.offsets.items():
            told, by = highest.get((answer.kind, place), (offset, answer))
            if offset < told:
                found.append(
                    f"{answer.kind} of {place[0]}-{place[1]}: broker {answer.node_id} told {offset}, asked at "
                    f"{answer.start_us} us; broker {by.node_id} had told {told} by {by.end_us} us"
                )
    return found


def fractured_reads(answers: Iterable[Answer], ledger: Ledger) -> list[str]:
    """Return what is told of each fractured read, by the places at which the final read has found the records."""
    at: dict[str, list[tuple[Place, int]]] = {}
    for place, reading in ledger.final(Isolation.COMMITTED).items():
        for offset, number in reading:
            transaction = ledger.records[number].transaction
            if transaction is not None:
                at.setdefault(transaction.name, []).append((place, offset))
    # What two partitions share: a transaction is before both last stable offsets, or before none of them.
    shared: dict[tuple[Place, Place], list[tuple[int, int, str]]] = {}
    for name, records in at.items():
        first, last = dict(sorted(records, reverse=True)), dict(sorted(records))
        for one in first:
            for other in last:
                shared.setdefault((one, other), []).append((first[one], last[other], name))
    found = []
    for answer in answers:
        if answer.kind != "fetched":
            continue
        for (one, other), transactions in shared.items():
            if one in answer.offsets and other in answer.offsets:
                found += [
                    f"{name}: broker {answer.node_id} showed {one[0]}-{one[1]} up to {answer.offsets[one]} with its "
                    f"record at {its}, and {other[0]}-{other[1]} up to {answer.offsets[other]} without that at {others}"
                    for its, others, name in transactions
                    if its < answer.offsets[one] and others >= answer.offsets[other]
                ]
    return found
