"""`exacta.exactly_once` with aiokafka: a transactional id for each partition fences the owner before."""

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import aiokafka
import pytest
from aiokafka.errors import KafkaError

import exacta
from exacta.transform.aio import AsyncExactlyOnce, AsyncTransaction
from tests.conformance.brokers import free_port
from tests.transform.conftest import CALL_S, MESSAGES, copied, fill, numbers

pytestmark = [pytest.mark.timeout(90), pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]

PARTITIONS = 2


@pytest.fixture(autouse=True)
def no_garbage_is_left() -> Iterator[None]:
    """Let aiokafka's futures complain here, when they are collected, that nobody has looked at their errors.

    In the middle of a compilation, in a later test, Python 3.11 would fail for it (CPython's issue 106905).
    """
    yield
    gc.collect()
    gc.freeze()  # as in tests/conformance/conftest.py


@pytest.fixture
def partitions(broker: exacta.Broker) -> str:
    broker.create_topic("numbers", PARTITIONS)
    for partition in range(PARTITIONS):
        fill(broker, "numbers", MESSAGES, partition)
    return "numbers"


@asynccontextmanager
async def copying(
    broker: exacta.Broker, topic: str = "in", producer_for: Callable[..., Any] | None = None
) -> AsyncIterator[AsyncExactlyOnce]:
    """A member of the group, and its transactions."""
    consumer = aiokafka.AIOKafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap_servers,
        group_id="copy",
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
        retry_backoff_ms=20,
    )
    once = exacta.exactly_once(consumer, producer_for or (lambda partition: producer_of(broker, partition)))
    await consumer.start()
    try:
        yield once
    finally:
        await consumer.stop()
        await once.aclose()


def producer_of(broker: exacta.Broker, partition: Any) -> aiokafka.AIOKafkaProducer:
    return aiokafka.AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        transactional_id=f"copy-{partition.topic}-{partition.partition}",
        retry_backoff_ms=20,
    )


async def copy(transaction: AsyncTransaction, count: int = 4, timeout: float = CALL_S) -> list[Any]:
    messages = await transaction.consume(count, timeout)
    for message in messages:
        await transaction.send("out", message.value)
    return messages


async def turn(once: AsyncExactlyOnce) -> AsyncTransaction:
    async with once as transaction:
        await copy(transaction, 4, 0.2)
    return transaction


async def copy_the_rest(broker: exacta.Broker, count: int, *members: AsyncExactlyOnce) -> None:
    async with asyncio.timeout(CALL_S):
        while True:
            for once in members:
                await turn(once)
            found = await asyncio.to_thread(copied, broker)
            assert max(Counter(found).values(), default=0) <= count // MESSAGES
            if len(found) == count:
                return


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_records_and_offsets_are_committed_together(broker: exacta.Broker) -> None:
    async def scenario() -> None:
        async with copying(broker) as once:
            async with once as transaction:
                assert len(await copy(transaction)) == 4
                assert await asyncio.to_thread(broker.records, "out") == []
            assert transaction.committed
            assert await asyncio.to_thread(broker.offsets, "copy") == {("in", 0): 4}

    run(scenario())
    assert copied(broker) == numbers(4)


def test_an_error_of_the_block_aborts_and_its_messages_come_again(broker: exacta.Broker) -> None:
    async def fail(once: AsyncExactlyOnce) -> None:
        async with once as transaction:
            await copy(transaction)
            raise ZeroDivisionError

    async def scenario() -> None:
        async with copying(broker) as once:
            with pytest.raises(ZeroDivisionError):
                await fail(once)
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert (copied(broker), broker.offsets("copy")) == (numbers(), {("in", 0): MESSAGES})


@pytest.mark.parametrize("api", ["AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"])
@pytest.mark.parametrize("fault", ["drop_answer", "cut_connection"])
def test_a_lost_request_or_answer(broker: exacta.Broker, api: str, fault: str) -> None:
    async def scenario() -> None:
        async with copying(broker) as once:
            getattr(broker.faults, fault)(api)
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert (copied(broker), broker.offsets("copy")) == (numbers(), {("in", 0): MESSAGES})


def test_a_record_that_the_broker_refuses_is_not_left_out(broker: exacta.Broker) -> None:
    """aiokafka itself commits without it."""

    async def scenario() -> None:
        async with copying(broker) as once:
            broker.faults.refuse("Produce", error="TOPIC_AUTHORIZATION_FAILED")
            with pytest.raises(KafkaError):
                await turn(once)
            assert await asyncio.to_thread(broker.offsets, "copy") == {}
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert copied(broker) == numbers()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("where", ["in the block", "before the commit's answer"])
def test_a_restart_of_the_broker(broker: exacta.Broker, clean: bool, where: str) -> None:
    async def scenario() -> None:
        async with copying(broker) as once:
            async with once as transaction:
                await copy(transaction)
                if where == "in the block":
                    await asyncio.to_thread(broker.restart, clean=clean)
                else:
                    broker.faults.drop_answer("EndTxn", then=lambda: broker.restart(clean=clean))
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert (copied(broker), broker.offsets("copy")) == (numbers(), {("in", 0): MESSAGES})


@pytest.mark.parametrize("fails", [True, False])
def test_a_record_that_is_being_sent_when_its_block_ends_is_of_no_later_transaction(
    broker: exacta.Broker, fails: bool
) -> None:
    """`asyncio.gather` lets the others go on when one fails; a send may wait for metadata, or for space."""

    class Slow(aiokafka.AIOKafkaProducer):  # type: ignore[misc]
        async def send(self, *arguments: Any, **more: Any) -> Any:
            for _ in range(20):
                await asyncio.sleep(0)
            assert self._txn_manager.is_in_transaction()
            return await super().send(*arguments, **more)

    def producer_for(partition: Any) -> Slow:
        return Slow(bootstrap_servers=broker.bootstrap_servers, transactional_id="copy")

    async def block(once: AsyncExactlyOnce) -> None:
        async with once as transaction:
            messages = await transaction.consume(2, CALL_S)
            sends.append(asyncio.gather(*(transaction.send("out", message.value) for message in messages)))
            await asyncio.sleep(0)  # the sends have begun
            if fails:
                raise ZeroDivisionError

    async def scenario() -> None:
        async with copying(broker, producer_for=producer_for) as once:
            with pytest.raises(ZeroDivisionError) if fails else nullcontext():
                await block(once)
            assert sends[0].done()
            await sends[0]
            await copy_the_rest(broker, MESSAGES, once)

    sends: list[asyncio.Future[Any]] = []
    run(scenario())
    assert copied(broker) == numbers()


def test_a_member_that_was_given_up_commits_nothing(broker: exacta.Broker, partitions: str) -> None:
    """The group itself would take its offsets: they name no generation.

    Its loop stands still, so that its heartbeat cannot let it join again.
    """
    is_held, may_go_on = threading.Event(), threading.Event()

    async def held_up() -> None:
        async with copying(broker, partitions) as first:
            async with first as transaction:
                await copy(transaction)
                is_held.set()
                assert may_go_on.wait(CALL_S)
            assert not transaction.committed
            for _ in range(4):
                await turn(first)

    async def succeeding() -> None:
        async with copying(broker, partitions) as second:
            await copy_the_rest(broker, MESSAGES * PARTITIONS, second)

    with ThreadPoolExecutor(1) as threads:
        holding = threads.submit(run, held_up())
        try:
            assert is_held.wait(CALL_S)
            broker.clock.advance(minutes=5)
            run(succeeding())
        finally:
            may_go_on.set()
        holding.result()
    assert Counter(copied(broker)) == dict.fromkeys(numbers(), PARTITIONS)


def test_a_rebalance_in_a_block_hands_nothing_out_twice(broker: exacta.Broker, partitions: str) -> None:
    """aiokafka sets the position back to the committed offset, which the open transaction is about to leave behind."""

    async def scenario() -> None:
        async with copying(broker, partitions) as first:
            async with first as transaction:
                await copy(transaction, 2)
                async with copying(broker, partitions) as second:
                    for _ in range(3):
                        await turn(second)
                await copy(transaction, 2, 1.0)  # nothing comes if the second one was given this partition
            await copy_the_rest(broker, MESSAGES * PARTITIONS, first)

    run(scenario())
    assert broker.offsets("copy") == {(partitions, number): MESSAGES for number in range(PARTITIONS)}


def test_a_cancelled_commit_is_settled_by_a_new_claim(broker: exacta.Broker) -> None:
    async def scenario() -> None:
        async with copying(broker) as once:
            broker.faults.delay("EndTxn", seconds=1)
            task = asyncio.create_task(turn(once))
            while (await asyncio.to_thread(broker.offsets, "copy")) == {}:  # it is done, and not answered
                assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert copied(broker) == numbers()


def test_a_producer_that_finds_no_broker_is_started_again(broker: exacta.Broker) -> None:
    tried: list[Any] = []

    def producer_for(partition: Any) -> aiokafka.AIOKafkaProducer:
        tried.append(partition)
        if len(tried) == 1:
            return aiokafka.AIOKafkaProducer(bootstrap_servers=f"127.0.0.1:{free_port()}", transactional_id="copy")
        return producer_of(broker, partition)

    async def scenario() -> None:
        async with copying(broker, producer_for=producer_for) as once:
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert len(tried) == 2
    assert copied(broker) == numbers()


def test_a_partition_for_which_no_producer_was_made_comes_again(broker: exacta.Broker) -> None:
    """The group has committed nothing yet, so only the consumer's position tells where the partition begins."""
    tried: list[Any] = []

    def producer_for(partition: Any) -> aiokafka.AIOKafkaProducer:
        tried.append(partition)
        if len(tried) == 1:
            raise ZeroDivisionError
        return producer_of(broker, partition)

    async def scenario() -> None:
        async with copying(broker, producer_for=producer_for) as once:
            with pytest.raises(ZeroDivisionError):
                async with once as transaction:
                    await copy(transaction)
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert copied(broker) == numbers()


def test_two_partitions_with_one_transactional_id_are_refused(broker: exacta.Broker, partitions: str) -> None:
    def producer_for(partition: Any) -> aiokafka.AIOKafkaProducer:
        return aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="copy")

    async def scenario() -> None:
        async with copying(broker, partitions, producer_for) as once:
            with pytest.raises(ValueError, match="a transactional_id of its own, not 'copy'"):
                await copy_the_rest(broker, MESSAGES * PARTITIONS, once)

    run(scenario())


def test_a_send_without_a_message(broker: exacta.Broker) -> None:
    async def scenario() -> None:
        async with copying(broker) as once, once as transaction:
            with pytest.raises(RuntimeError, match="consume a message first"):
                await transaction.send("out", b"v")

    run(scenario())


@pytest.mark.parametrize(
    ("settings", "producer", "error", "told"),
    [
        ({"enable_auto_commit": True}, producer_of, ValueError, "enable_auto_commit=False"),
        ({"group_id": None}, producer_of, ValueError, "no group_id"),
        ({}, None, TypeError, "a function that makes an AIOKafkaProducer for a partition"),
    ],
)
def test_what_would_lose_or_double_is_refused(
    settings: dict[str, Any], producer: Callable[..., Any] | None, error: type[Exception], told: str
) -> None:
    async def scenario() -> None:
        consumer = aiokafka.AIOKafkaConsumer("in", **{"group_id": "copy", "enable_auto_commit": False, **settings})
        with pytest.raises(error, match=told):
            exacta.exactly_once(consumer, producer)  # type: ignore[arg-type]

    run(scenario())


def test_what_a_rebalance_hands_out_again_within_one_consume_is_not_lost(broker: exacta.Broker) -> None:
    """The position is set back between the first message and those that are there already."""

    class SetBack:
        """A consumer whose position is set back when it is asked for the second time for what is there already."""

        def __init__(self, consumer: Any) -> None:
            self._consumer = consumer
            self._asked = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self._consumer, name)

        async def getmany(self, *partitions: Any, **options: Any) -> Any:
            self._asked += options["timeout_ms"] == 0
            if self._asked == 2:
                self._asked += 1
                self._consumer.seek(partitions[0], 1)
                return await self._consumer.getmany(*partitions, **{**options, "timeout_ms": 1_000})
            return await self._consumer.getmany(*partitions, **options)

    async def scenario() -> None:
        async with copying(broker) as once:
            once._consumer = SetBack(once._consumer)
            async with once as transaction:
                await copy(transaction, 2)
                await copy(transaction, 4)
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert copied(broker) == numbers()
