"""The topics and subscriptions that clients have announced for their transactions, for a client that asks about one.

Owns names for diagnosis only. ADD_PARTITION_TO_TXN and ADD_SUBSCRIPTION_TO_TXN change nothing here: the writes and the
acknowledgements themselves register what takes part, durably. Apache Pulsar shows what was announced, by the names that
its clients have used, so that this is noted for its web interface. A restart forgets it, and so does a flood.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from exacta.core.ids import TransactionId

MOST_BYTES: Final = 8 << 20
"""The names may take so much memory. Then the transaction that was announced first is forgotten."""

_BYTES_A_NAME: Final = 150
"""The memory of a name beside its characters."""


class Names:
    """All that was announced for one transaction."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.subscriptions: set[tuple[str, str]] = set()
        """Pairs of a topic and a subscription."""
        self.size = 0


class Announced:
    """The notes of all transactions of this server."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._used_bytes = 0
        self._by_transaction: OrderedDict[TransactionId, Names] = OrderedDict()

    def of(self, transaction_id: TransactionId) -> Names:
        """Return what was announced for a transaction."""
        return self._by_transaction.get(transaction_id) or Names()

    def note_topics(self, transaction_id: TransactionId, topics: Iterable[str]) -> None:
        """Note topics that a transaction will write to."""
        names = self._names(transaction_id)
        for topic in topics:
            if topic not in names.topics:
                names.topics.add(topic)
                self._count(names, len(topic))
        self._keep_within()

    def note_subscriptions(self, transaction_id: TransactionId, pairs: Iterable[tuple[str, str]]) -> None:
        """Note pairs of a topic and a subscription whose messages a transaction will acknowledge."""
        names = self._names(transaction_id)
        for pair in pairs:
            if pair not in names.subscriptions:
                names.subscriptions.add(pair)
                self._count(names, len(pair[0]) + len(pair[1]))
        self._keep_within()

    def forget(self, transaction_id: TransactionId) -> None:
        """Forget a transaction, since it has ended."""
        names = self._by_transaction.pop(transaction_id, None)
        if names is not None:
            self._used_bytes -= names.size

    def _names(self, transaction_id: TransactionId) -> Names:
        names = self._by_transaction.get(transaction_id)
        if names is None:
            names = self._by_transaction[transaction_id] = Names()
            self._count(names, 0)
        return names

    def _count(self, names: Names, size: int) -> None:
        names.size += size + _BYTES_A_NAME
        self._used_bytes += size + _BYTES_A_NAME

    def _keep_within(self) -> None:
        while self._used_bytes > self._most_bytes:
            _, names = self._by_transaction.popitem(last=False)
            self._used_bytes -= names.size
