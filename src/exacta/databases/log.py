"""The log's side of a transaction over log and database: messages, offsets, prepare, end.

This module owns the producer's pair and what the open transaction has written. A transaction is *prepared* once all of
its messages and offsets are answered: in a two-phase commit (KIP-939) every answer follows the sync. It has no
time-out then, and outlives this process.

Errors are `TwoPhaseError`s: `TakenOver` where the log knows another holder of the transactional id. After an error the
open transaction can only be aborted.
"""

import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from exacta.client.errors import ClientError, KafkaError
from exacta.client.explanations import explain
from exacta.client.partitioner import partition_of_key
from exacta.client.producer import IdempotentProducer
from exacta.client.routing import Client
from exacta.client.single_record import Header, SingleRecord
from exacta.client.transactions import CommittedOffset, Producer, TopicPartition, commit_offsets
from exacta.client.two_phase import NoTwoPhaseCommits, end_transaction, take_over
from exacta.databases.errors import TwoPhaseError, one_line, taken_over
from exacta.readmodel.transactions import ABORTED

Bytes = bytes | str | None
Headers = Mapping[str, Bytes] | Iterable[tuple[str, Bytes]]

_COUNTS_AGE_S = 300.0
"""A topic may get more partitions; the Java client notices after as long (`metadata.max.age.ms`)."""


class NoSuchPartition(ClientError):
    """A message is for a partition that its topic does not have."""


class Log:
    """The transactions of one transactional id, one after the other."""

    def __init__(self, client: Client, transactional_id: str) -> None:
        self._client = client
        self._transactional_id = transactional_id
        self._producer: Producer | None = None
        self._writer: IdempotentProducer | None = None
        self._counts: dict[str, tuple[int, float]] = {}
        """The number of partitions of each topic, and when it was asked for."""
        self._keyless: dict[str, int] = {}
        """The partition that messages without a key go to, by topic, for the length of a transaction."""
        self.has_written = False
        """It is true if the open transaction may have something in the log."""
        self.failure: TwoPhaseError | None = None
        """The first error since the transaction began."""

    def cluster_id(self) -> str:
        """Ask the cluster for its id."""
        with self._errors():
            self._client.nodes()
        return self._client.cluster_id or ""

    @property
    def producer(self) -> Producer:
        """Return the incarnation whose pair names the transaction that is open, or the next one."""
        assert self._producer is not None, "not taken over yet"
        return self._producer

    @property
    def pair(self) -> tuple[int, int]:
        """Return the producer id and epoch of `producer`."""
        return (self.producer.producer_id, self.producer.producer_epoch)

    def take_over(self) -> tuple[int, int] | None:
        """Take over the transactional id: from anybody the first time, later only from ourselves (KIP-360).

        Returns the pair of the transaction that is open, if one is. It can only be ended.
        """
        self._forget()
        with self._errors():
            taken = take_over(self._client, self._transactional_id, expected=self._producer)
        self._forget()
        self._producer = taken.producer
        return taken.left_open

    def begin(self) -> None:
        """Begin a transaction, of which the log knows nothing before its first message or offset."""
        self._forget()

    def produce(
        self, topic: str, value: Bytes, key: Bytes, headers: Headers, partition: int | None, timestamp_ms: int | None
    ) -> None:
        """Put a message into the transaction; it is sent when its batch is full, at the latest by `prepare`."""
        record = SingleRecord(_encoded(key), _encoded(value), _pairs(headers))
        now_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        with self._errors():
            at = TopicPartition(topic, self._partition(topic, _encoded(key), partition))
            if self._writer is None:
                timeout_ms = self._client.call_timeout_ms
                self._writer = IdempotentProducer(self._client, self.producer, delivery_timeout_ms=timeout_ms)
            self.has_written = True
            while not self._writer.extend(at, now_ms, record):
                pass

    def send_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Put a group's offsets into the transaction."""
        if offsets:
            self.has_written = True
            committed = {TopicPartition(*at): CommittedOffset(offset, "") for at, offset in offsets.items()}
            with self._errors():
                commit_offsets(self._client, self.producer, group, committed)

    def prepare(self) -> None:
        """Return once everything that the transaction has written is durable in the log.

        Raises the first error since it began, even if the caller has met it already.
        """
        if self.failure is not None:
            raise self.failure
        if self._writer is not None:
            with self._errors():
                self._writer.flush()
            self._close_writer()

    def why_aborted(self, pair: tuple[int, int]) -> str | None:
        """Return why the transaction of a pair was aborted, as far as the broker remembers that it was."""
        with self._errors():
            (found,) = explain(self._client, [self._transactional_id])
        for each in found.incidents:
            if each.what == ABORTED and (each.producer_id, each.producer_epoch) == pair:
                return f"{each.cause} ({each.client})" if each.client else each.cause
        return None

    def end(self, *, commit: bool) -> None:
        """End the transaction that is open, or was left open."""
        self._close_writer()
        with self._errors():
            self._producer = end_transaction(self._client, self.producer, commit=commit)
        self._forget()

    def close(self) -> None:
        """Close the connections."""
        self._close_writer()
        self._client.close()

    def _forget(self) -> None:
        self._close_writer()
        self._keyless.clear()
        self.has_written = False
        self.failure = None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise an error of the client as one of ours, and keep the first one."""
        try:
            yield
        except ClientError as error:
            said = self._said(error)
            self.failure = self.failure or said
            raise said from error

    def _said(self, error: ClientError) -> TwoPhaseError:
        if isinstance(error, KafkaError) and error.fenced:
            return taken_over(self._transactional_id, str(error))
        return TwoPhaseError(f"{'' if isinstance(error, NoTwoPhaseCommits) else 'the log: '}{one_line(error)}")

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _partition(self, topic: str, key: bytes | None, named: int | None) -> int:
        """Return the partition of a message: the one that is named, the key's, or the topic's for this transaction.

        The topic is created where it is missing: a write into it would be tried again and again, under the locks of the
        database. For the same reason a partition that is not there is refused at once.
        """
        count, asked_s = self._counts.get(topic, (0, 0.0))
        if not count or time.monotonic() - asked_s > _COUNTS_AGE_S or (named or 0) >= count:
            count = self._client.partitions([topic], create=True)[topic]
            self._counts[topic] = (count, time.monotonic())
        if named is not None:
            if not 0 <= named < count:
                raise NoSuchPartition(f"topic '{topic}' has {count} partitions, and none with the number {named}")
            return named
        if key is not None:
            return partition_of_key(key, count)
        return self._keyless.setdefault(topic, random.randrange(count))


def _encoded(content: Bytes) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    raise TypeError(f"a message holds bytes, a string or None, not {type(content).__name__}")


def _pairs(headers: Headers) -> list[Header]:
    given = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, _encoded(content)) for name, content in given]
