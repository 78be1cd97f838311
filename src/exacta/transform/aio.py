"""Consume, transform, produce with aiokafka: records and offsets of one partition at a time, in one transaction.

Owns the producers, of which there is one for each partition that is consumed, and the consumer's positions. It does not
own the consumer, which the program starts and stops.

Theory of operation. aiokafka sends offsets without member and generation (TxnOffsetCommit before version 3), and asks
for committed offsets without waiting for transactions (OffsetFetch before version 7). So the group fences nobody here
(KIP-447 needs both), and the transactional id does, as Kafka Streams did before KIP-447. Each partition that is
consumed has a transactional id of its own, the same in all instances. The instance that is given the partition claims
it. The new owner starts a producer by that id, which ends the transaction of the owner before and fences its producer.
Only then it asks for the committed offset, and begins there. So no claim commits anything once there is a later one.

The group may rebalance at any moment, since aiokafka joins in the background. It sets the positions again then, also to
offsets that an open transaction is about to leave behind. So a claim remembers how far it is, and takes nothing below.

aiokafka has no public way to learn a consumer's group and whether it commits by itself, nor a producer's transactional
id and its fatal error. They are read from private attributes. That all of these are there is looked up before the first
message is handed out (`_private`).
"""

import asyncio
import logging
from collections.abc import Callable
from importlib.metadata import version
from itertools import chain
from types import TracebackType
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import IllegalStateError, KafkaError, ProducerFenced

logger = logging.getLogger(__name__)

PAUSE_S = 0.1
"""The time until a producer that found no broker is started again: aiokafka's own retry_backoff_ms."""
STOP_S = 10.0
"""A producer that was given up is not waited for any longer: its broker may be away."""

_MANAGERS_NAMES = ("transactional_id", "is_fatal_error", "_transaction_waiter")
_ACCUMULATORS_NAMES = ("_batches", "_pending_batches")


class Claim:
    """A partition that this instance consumes, and the producer that fences all other owners."""

    def __init__(self, partition: Any, producer: Any) -> None:
        self.partition, self.producer = partition, producer
        self.next_offset: int | None = None
        """The first offset that no transaction of this claim has; None while nothing is committed or taken."""
        self._manager = _private(producer, "_txn_manager")  # None without transactions and idempotence
        self._accumulator = _private(producer, "_message_accumulator")
        for owner, names in ((self._manager, _MANAGERS_NAMES), (self._accumulator, _ACCUMULATORS_NAMES)):
            for name in names if owner is not None else ():
                _private(owner, name)

    @property
    def transactional_id(self) -> str | None:
        """Return the transactional id; None where the producer has none."""
        found: str | None = None if self._manager is None else self._manager.transactional_id
        return found

    @property
    def is_of_no_use(self) -> bool:
        """Return whether the producer has an error after which it can neither commit nor abort."""
        return self._manager is not None and bool(self._manager.is_fatal_error())

    @property
    def is_lost(self) -> bool:
        """True where another producer can do what this one never can again: it is fenced, or has lost its broker."""
        return self.is_of_no_use and _would_pass(self._manager._transaction_waiter.exception())

    def look_at_what_was_told(self) -> None:
        """Look at the errors that the producer has told nobody: aiokafka itself never does, and asyncio complains."""
        batches = [*chain.from_iterable(self._accumulator._batches.values()), *self._accumulator._pending_batches]
        for told in [self._manager._transaction_waiter, *(each._drain_waiter for each in batches)]:
            if told is not None and told.done():  # None: it has begun no transaction
                _look(told)


class AsyncTransaction:
    """One transaction: what `async with once as transaction` gives to the block."""

    def __init__(self, once: "AsyncExactlyOnce") -> None:
        self.committed = False
        """After the block: whether its records and offsets are committed. If not, the messages come again."""
        self._once = once
        self._claim: Claim | None = None
        self._first = 0
        self._sent: list[Any] = []
        self._refused: Exception | None = None
        """The last error of `send`."""
        self._sending = 0
        self._all_are_sent = asyncio.Event()
        """Set while no `send` is at work: a task of the block may outlive it."""
        self._all_are_sent.set()
        self._is_open = True

    async def consume(self, count: int = 1, timeout: float = 1.0) -> list[Any]:
        """Return up to `count` messages of one partition; wait at most `timeout` seconds for the first one.

        All messages of a transaction are of one partition. The transaction commits the offsets of all that it has
        returned. Raises aiokafka's `KafkaError`.
        """
        self._check()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            claim, messages = await self._once._take(self._claim, count, max(0.0, deadline - loop.time()))
            if claim is not None and messages:
                if self._claim is None:
                    try:
                        await claim.producer.begin_transaction()
                    except BaseException:
                        self._once._seek(claim.partition, messages[0].offset)
                        await self._once._give_up(claim)
                        raise
                    self._claim, self._first = claim, messages[0].offset
                claim.next_offset = messages[-1].offset + 1
                return messages
            if loop.time() >= deadline:
                return []

    async def send(self, topic: str, value: Any = None, key: Any = None, **more: Any) -> "asyncio.Future[Any]":
        """Send a record in the transaction: `AIOKafkaProducer.send`, with its arguments and its future.

        The block need not wait for the future. The transaction is committed only if all records are written: aiokafka
        itself commits without those that the broker has refused.
        """
        self._check()
        if self._claim is None:
            raise RuntimeError("consume a message first: the transaction belongs to the partition that it comes from")
        self._sending += 1
        self._all_are_sent.clear()
        try:
            future: asyncio.Future[Any] = await self._claim.producer.send(topic, value, key, **more)
            self._sent.append(future)
        except Exception as refused:
            self._refused = refused
            raise
        finally:
            self._sending -= 1
            if not self._sending:
                self._all_are_sent.set()
        future.add_done_callback(_look)
        return future

    def _is_told_by(self, error: BaseException) -> bool:
        """Return whether an error of the block is one of this transaction's own records, or of its `send`."""
        told = [each.exception() for each in self._sent if each.done() and not each.cancelled()]
        return any(error is each for each in [*told, self._refused])

    def _check(self) -> None:
        if not self._is_open:
            raise RuntimeError("the transaction is over: consume and send inside of its block")


class AsyncExactlyOnce:
    """Transactions of aiokafka's clients, one after the other: see `exacta.exactly_once`."""

    def __init__(self, consumer: Any, producer_for: Callable[[Any], Any]) -> None:
        self._consumer = consumer
        self._producer_for = producer_for
        self._group_id: str | None = _private(consumer, "_group_id")
        if self._group_id is None:
            raise ValueError("the consumer has no group_id, and so no offsets to commit")
        if _private(consumer, "_enable_auto_commit"):
            raise ValueError("the consumer commits on its own what a transaction aborts: set enable_auto_commit=False")
        self._claims: dict[Any, Claim] = {}
        self._left: list[Claim] = []
        self._transaction: AsyncTransaction | None = None

    async def __aenter__(self) -> AsyncTransaction:
        """Begin a transaction."""
        if self._transaction is not None:
            raise RuntimeError("the transaction before is still open: a block cannot stand in another one")
        self._transaction = AsyncTransaction(self)
        return self._transaction

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Commit; or abort and go back, if the block has raised an error, or the partition has another owner now."""
        transaction, self._transaction = self._transaction, None
        assert transaction is not None
        transaction._is_open = False
        claim = transaction._claim
        if claim is None:
            transaction.committed = error is None
            return False
        failure: BaseException | None = error
        try:
            if error is None:
                await self._commit(transaction, claim)
                transaction.committed = True
        except KafkaError as refused:
            failure = refused
        except BaseException:
            self._leave(transaction, claim)
            raise
        if failure is None:
            return False
        is_own = error is None or transaction._is_told_by(error)
        if is_own and (isinstance(failure, ProducerFenced) or claim.is_lost):
            # A message must come for a new claim, which knows where to begin.
            self._seek(claim.partition, transaction._first)
            await self._give_up(claim)
            logger.info("%s begins again, and its messages come again: %r", claim.partition, failure)
            return True
        await self._go_back(transaction, claim)
        if error is None:
            raise failure
        return False

    async def aclose(self) -> None:
        """Stop the producers. Stop the consumer before."""
        for claim in [*self._claims.values(), *self._left]:
            await self._give_up(claim)
        self._left.clear()

    # --- taking messages ----------------------------------------------------------------------------------------------

    async def _take(self, of: Claim | None, count: int, timeout_s: float) -> tuple[Claim | None, list[Any]]:
        """Take messages of one partition: of a claim, or of any; nothing if none are there, or they come again."""
        for claim in [*self._claims.values()]:
            if claim is not of and claim.partition not in self._consumer.assignment():
                await self._give_up(claim)
        among = () if of is None else (of.partition,)
        found = await self._consumer.getmany(*among, timeout_ms=int(timeout_s * 1_000), max_records=1)
        for partition, messages in found.items():
            owned = self._claims.get(partition)
            if owned is None:
                try:
                    await self._claim(partition, messages[0].offset)
                except KafkaError as away:  # only a start is not tried again by aiokafka itself
                    if not _would_pass(away):
                        raise
                    logger.warning("%s waits for a broker: %s", partition, away)
                    await asyncio.sleep(PAUSE_S)
            elif owned.next_offset is not None and messages[0].offset < owned.next_offset:
                self._seek(owned.partition, owned.next_offset)  # a rebalance has set the position
            else:
                return owned, messages + await self._more(owned, messages[0].offset, count - 1)
        return None, []

    async def _more(self, claim: Claim, after: int, count: int) -> list[Any]:
        """Take what is there already of a partition."""
        if count == 0 or claim.partition not in self._consumer.assignment():
            return []
        try:
            found = await self._consumer.getmany(claim.partition, timeout_ms=0, max_records=count)
        except BaseException:
            self._seek(claim.partition, after)
            raise
        messages: list[Any] = found.get(claim.partition, [])
        if messages and messages[0].offset <= after:  # a rebalance has set the position
            self._seek(claim.partition, after + 1)
            return []
        return messages

    async def _claim(self, partition: Any, offset: int) -> None:
        """Fence the owner before, and go to where it was; to `offset` if nothing is committed."""
        try:
            claim = self._claims[partition] = self._new_claim(partition)
            try:
                await claim.producer.start()
                claim.next_offset = await self._consumer.committed(partition)
            except BaseException:
                await self._give_up(claim)
                raise
        except BaseException:
            self._seek(partition, offset)  # the message there is handed out to nobody
            raise
        self._seek(partition, offset if claim.next_offset is None else claim.next_offset)

    def _new_claim(self, partition: Any) -> Claim:
        claim = Claim(partition, self._producer_for(partition))
        if claim.transactional_id in (None, *(each.transactional_id for each in self._claims.values())):
            raise ValueError(
                f"{partition} needs a producer with a transactional_id of its own, not {claim.transactional_id!r}"
            )
        return claim

    def _seek(self, partition: Any, offset: int) -> None:
        try:
            self._consumer.seek(TopicPartition(*partition), offset)
        except IllegalStateError:
            logger.debug("%s is not assigned any more", partition)

    # --- ending -------------------------------------------------------------------------------------------------------

    async def _commit(self, transaction: AsyncTransaction, claim: Claim) -> None:
        await transaction._all_are_sent.wait()
        if transaction._sent:
            await asyncio.gather(*transaction._sent)
        offsets = {claim.partition: claim.next_offset}
        await claim.producer.send_offsets_to_transaction(offsets, self._group_id)
        await claim.producer.commit_transaction()

    async def _go_back(self, transaction: AsyncTransaction, claim: Claim) -> None:
        """Abort, and let the messages come again: from a new claim, if the producer is of no use any more."""
        try:
            await transaction._all_are_sent.wait()  # what is sent later would be of the next transaction
            if claim.is_of_no_use:
                await self._give_up(claim)
            else:
                await claim.producer.abort_transaction()
        except KafkaError as failure:
            logger.info("the transaction of %s could not be aborted: %r", claim.partition, failure)
            await self._give_up(claim)
        except BaseException:
            self._leave(transaction, claim)
            raise
        claim.next_offset = transaction._first
        self._seek(claim.partition, transaction._first)

    def _leave(self, transaction: AsyncTransaction, claim: Claim) -> None:
        """End a claim whose program does not wait for the end of its transaction: a new one can tell how it went."""
        if self._claims.pop(claim.partition, None) is not None:
            self._left.append(claim)
        self._seek(claim.partition, transaction._first)

    async def _give_up(self, claim: Claim) -> None:
        """End a claim, and its producer."""
        self._claims.pop(claim.partition, None)
        try:
            await asyncio.wait_for(claim.producer.stop(), STOP_S)
        except (KafkaError, TimeoutError) as failure:
            logger.info("the producer of %s did not stop: %r", claim.partition, failure)
        claim.look_at_what_was_told()


def _private(client: Any, name: str) -> Any:
    """Return an attribute that aiokafka keeps to itself. Raises RuntimeError for a version that has no such one."""
    try:
        return getattr(client, name)
    except AttributeError as missing:
        raise RuntimeError(
            f"exacta.exactly_once does not know aiokafka {version('aiokafka')}: {missing}; install an older aiokafka"
        ) from missing


def _look(future: "asyncio.Future[Any]") -> None:
    """Look at an error that the end of the block tells, so that asyncio does not."""
    if not future.cancelled():
        future.exception()


def _would_pass(error: BaseException | None) -> bool:
    """Return whether a new producer is free of an error.

    It is fenced. Or its broker was away while it looked for a coordinator: aiokafka raises that as another error, and
    its sender does not live through it.
    """
    while error is not None:
        if isinstance(error, ProducerFenced) or (isinstance(error, KafkaError) and error.retriable):
            return True
        error = error.__cause__
    return False
