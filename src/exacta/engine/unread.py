"""Messages that could not be read for a subscription, or not be converted: they are tried again after a while.

Owns the wait. Consumers do not ask for the messages, since they only wait. What they were given already, and did not
get, is taken back from them then, without being counted as delivered, and with their permits.
"""

from collections.abc import Callable, Sequence
from typing import Any

from exacta.core.commands import Command, Permit, Redeliver
from exacta.core.ids import ConsumerId, SubscriptionKey
from exacta.core.rejections import Rejection
from exacta.core.replies import Delivering, Reply
from exacta.core.state.state import State
from exacta.core.values.runs import count
from exacta.engine.reading import BatchReader, Read
from exacta.ports.journal import Extent
from exacta.ports.scheduler import Scheduler

RETRY_SECONDS = 10.0
"""The time after which reading is tried again: soon for who waits for it, and seldom for a damaged disk."""


class UnreadSubscriptions:
    """The subscriptions for which a read has failed, and what consumers were to have of it."""

    def __init__(
        self,
        state: State,
        scheduler: Scheduler,
        reader: BatchReader,
        submit: Callable[[Sequence[Command], Callable[[list[Reply | Rejection]], None]], object],
        look_soon: Callable[[SubscriptionKey], None],
    ) -> None:
        self._state = state
        self._scheduler = scheduler
        self._reader = reader
        self._submit = submit
        self._look_soon = look_soon
        self._chosen: dict[SubscriptionKey, list[Delivering]] = {}
        self._has_stopped = False

    def __contains__(self, key: object) -> bool:
        return key in self._chosen and key in self._state.volatile.deliveries

    def stop(self) -> None:
        """Try nothing any more."""
        self._has_stopped = True

    def tell_of_faults(self, key: SubscriptionKey, extents: Sequence[Extent], reads: Sequence[Read]) -> bool:
        """Tell the operator of what cannot be read, if there is such; delivery stays before it."""
        partition = self._state.partitions.get(key[0])
        for extent, read in zip(extents, reads, strict=True):
            if read.fault and partition is not None:
                self._reader.tell(partition.topic, partition.index, extent.first_offsets[0], read)
                return True
        return False

    def add(self, key: SubscriptionKey, chosen: Sequence[Delivering] = ()) -> None:
        """Look at a subscription again after a while; `chosen` are the entries that consumers were given already."""
        if key not in self._chosen:
            self._chosen[key] = []
            self._scheduler.call_later(RETRY_SECONDS, self._try_again, key)
        self._chosen[key] += chosen

    def _try_again(self, key: SubscriptionKey) -> None:
        chosen, partition = self._chosen.pop(key), self._state.partitions.get(key[0])
        if self._has_stopped or partition is None:
            return
        where: dict[str, Any] = {"topic": partition.topic, "partition": partition.index, "subscription": key[1]}
        by_consumer: dict[ConsumerId, list[Delivering]] = {}
        for each in chosen:
            by_consumer.setdefault(each.consumer_id, []).append(each)
        for consumer_id, entries in by_consumer.items():
            bases = tuple(each.base for each in entries)
            unused = sum(count(each.free) for each in entries)
            taken_back = Redeliver(**where, consumer_id=consumer_id, entries=bases, is_counted=False)
            permit = Permit(**where, consumer_id=consumer_id, permits=unused)
            self._submit([taken_back, permit], lambda answers: None)
        self._look_soon(key)
