"""`exacta.exactly_once` with aiokafka where a producer is lost: its messages come again, and nothing is raised."""

import asyncio
import gc
from collections.abc import Iterator

import pytest
from aiokafka.errors import ProducerFenced

import exacta
from exacta.transform.aio import AsyncExactlyOnce
from tests.transform.conftest import MESSAGES, copied, numbers
from tests.transform.test_aio import copy, copy_the_rest, copying, run

pytestmark = [pytest.mark.timeout(90), pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]


@pytest.fixture(autouse=True)
def asyncio_has_nothing_to_tell(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A future whose error nobody has looked at is told when it goes, with a long traceback."""
    yield
    gc.collect()
    gc.freeze()  # as in tests/conformance/conftest.py
    assert [each for each in caplog.messages if "never retrieved" in each] == []


def test_a_fenced_partition_comes_again(broker: exacta.Broker) -> None:
    async def scenario() -> None:
        async with copying(broker) as once:
            async with once as transaction:
                await copy(transaction)
                await asyncio.to_thread(broker.faults.fence, "copy-in-0")
            assert not transaction.committed
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert copied(broker) == numbers()


@pytest.mark.parametrize("fault", ["fence", "expire_transaction"])
@pytest.mark.parametrize("told_by", ["a record", "a send"])
def test_a_block_that_learns_that_it_is_fenced_raises_nothing(broker: exacta.Broker, fault: str, told_by: str) -> None:
    async def scenario() -> None:
        async with copying(broker) as once:
            async with once as transaction:
                await copy(transaction)
                await asyncio.gather(*transaction._sent)
                await asyncio.to_thread(getattr(broker.faults, fault), "copy-in-0")
                if told_by == "a record":
                    await (await transaction.send("out", b"v"))
                else:
                    await transaction.send("in", b"v")  # the partition is new to the transaction
                    manager = transaction._claim.producer._txn_manager  # type: ignore[union-attr]
                    with pytest.raises(ProducerFenced):
                        await manager.wait_for_transaction_end()
                    await transaction.send("out", b"v")
                pytest.fail("it was not told")
            assert not transaction.committed
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert copied(broker) == numbers()


def test_the_fence_of_another_producer_is_an_error_of_the_block(broker: exacta.Broker) -> None:
    async def fail(once: AsyncExactlyOnce) -> None:
        async with once as transaction:
            await copy(transaction)
            raise ProducerFenced

    async def scenario() -> None:
        async with copying(broker) as once:
            with pytest.raises(ProducerFenced):
                await fail(once)

    run(scenario())


@pytest.mark.parametrize("told", ["in the block", "at its end"])
def test_a_broker_that_is_away_while_the_coordinator_is_looked_for_is_waited_for(
    broker: exacta.Broker, told: str
) -> None:
    """aiokafka's sender does not live through that; at the end of the transaction nobody knows how it went."""

    async def scenario() -> None:
        async with copying(broker) as once:
            async with once as transaction:
                await copy(transaction)
                await asyncio.gather(*transaction._sent)
                lost = broker.faults.cut_connection("FindCoordinator")
                if told == "in the block":
                    broker.faults.refuse("AddPartitionsToTxn", error="NOT_COORDINATOR")
                    await (await transaction.send("in", b"v"))
                    pytest.fail("it was not told")
                broker.faults.refuse("EndTxn", error="NOT_COORDINATOR")
            assert lost.happened
            assert not transaction.committed
            await copy_the_rest(broker, MESSAGES, once)

    run(scenario())
    assert copied(broker) == numbers()


def test_a_broker_that_is_away_while_a_producer_starts_is_waited_for(broker: exacta.Broker) -> None:
    async def scenario() -> None:
        async with copying(broker) as once:
            lost = broker.faults.cut_connection("FindCoordinator")
            await copy_the_rest(broker, MESSAGES, once)
            assert lost.happened

    run(scenario())
    assert copied(broker) == numbers()
