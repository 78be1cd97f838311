"""Write single records into one topic, if wanted in transactions of this process alone.

This module owns the choice of a partition and the transactions; `producer.py` sends, and repeats what got lost. The
sink, whose transactions other processes end, uses that directly.

Theory of operation. Each transaction has a new incarnation of the transactional id, taken over from the one
before: another writer that has taken the id meanwhile fences us. So sequences begin again with each, and nothing need
be remembered from one to the next.
"""

import random
import time
from collections.abc import Sequence
from typing import NamedTuple

from exacta.client.errors import ClientError
from exacta.client.partitioner import partition_of_key
from exacta.client.producer import IdempotentProducer
from exacta.client.routing import Client
from exacta.client.single_record import Header, SingleRecord
from exacta.client.transactions import Producer, TopicPartition, end_transaction, init_producer_id, new_producer

_CLEAN_UP_MS = 5_000


class NewRecord(NamedTuple):
    """A record to be written, at the present time if it has no timestamp."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()
    timestamp_ms: int | None = None


class TopicWriter:
    """Writes records into a topic, all into one partition or each by its key. Raises what the producer raises."""

    def __init__(
        self,
        client: Client,
        topic: str,
        *,
        partition: int | None = None,
        compression: str = "none",
        transactional_id: str = "",
        transaction_timeout_ms: int = 60_000,
    ) -> None:
        self.written = 0
        """The records that are written, or sent into the transaction that is open."""
        self.transactions = 0
        """The transactions that are committed."""
        self._client = client
        self._topic = topic
        self._partition = partition
        self._compression = compression
        self._transactional_id = transactional_id
        self._transaction_timeout_ms = transaction_timeout_ms
        self._count = client.partitions([topic], create=True)[topic]
        self._keyless = random.randrange(self._count)
        self._identity = self._take_over(None)
        self._producer: IdempotentProducer | None = None

    def add(self, record: NewRecord) -> None:
        """Add a record to its batch; sends what is full, and begins a transaction where none is open."""
        if self._producer is None:
            self._producer = self._new_producer()
        at = TopicPartition(self._topic, self._partition_of(record))
        timestamp_ms = int(time.time() * 1000) if record.timestamp_ms is None else record.timestamp_ms
        one = SingleRecord(record.key, record.value, record.headers)
        while not self._producer.extend(at, timestamp_ms, one):
            self._turn()
        self.written += 1

    def flush(self) -> None:
        """Send what was added, and wait until it is written."""
        if self._producer is not None:
            self._producer.flush()
            self._turn()

    def commit(self) -> None:
        """Send what was added, and commit it if it is a transaction."""
        self.flush()
        if self._producer is None or not self._identity.is_transactional:
            return
        self.close()
        end_transaction(self._client, self._identity, commit=True)
        self.transactions += 1

    def give_up(self, *, send: bool) -> bool:
        """Abort the open transaction; without one, send what was added if so asked. Return whether that was possible.

        It is given up after a few seconds, and raises nothing of the cluster's. After an error of the producer there is
        nothing to send: it would be refused again.
        """
        if self._producer is None:
            return True
        try:
            if self._identity.is_transactional:
                deadline = self._client.deadline(_CLEAN_UP_MS)
                end_transaction(self._client, self._identity, commit=False, deadline=deadline)
            elif send:
                self._producer.flush(timeout_ms=_CLEAN_UP_MS)
        except ClientError:
            return False
        finally:
            self.close()
        return True

    def close(self) -> None:
        """Give the connections back. What was not flushed is given up."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _new_producer(self) -> IdempotentProducer:
        if self.transactions:
            self._identity = self._take_over(self._identity)
        return IdempotentProducer(self._client, self._identity, compression=self._compression)

    def _take_over(self, expected: Producer | None) -> Producer:
        if not self._transactional_id:
            return new_producer(self._client)
        return init_producer_id(
            self._client,
            self._transactional_id,
            transaction_timeout_ms=self._transaction_timeout_ms,
            expected=expected,
        )

    def _partition_of(self, record: NewRecord) -> int:
        if self._partition is not None:
            return self._partition
        return self._keyless if record.key is None else partition_of_key(record.key, self._count)

    def _turn(self) -> None:
        """Let the records without a key go to the next partition: a batch of theirs has ended."""
        self._keyless = (self._keyless + 1) % self._count
