"""`exacta.exactly_once` with an aiokafka that keeps what it needs under other names."""

from typing import Any

import aiokafka
import pytest

import exacta
from tests.transform.conftest import CALL_S
from tests.transform.test_aio import copying, producer_of, run

pytestmark = [pytest.mark.timeout(90), pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]


@pytest.mark.parametrize(
    "name", ["_txn_manager", "transactional_id", "is_fatal_error", "_transaction_waiter", "_message_accumulator"]
)
def test_another_aiokafka_is_told_before_a_message_is_handed_out(
    broker: exacta.Broker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Its producer's attributes have other names."""

    def producer_for(partition: Any) -> aiokafka.AIOKafkaProducer:
        producer = producer_of(broker, partition)
        if name == "is_fatal_error":
            monkeypatch.delattr(type(producer._txn_manager), name)
        else:
            delattr(producer if hasattr(producer, name) else producer._txn_manager, name)
        return producer

    async def scenario() -> None:
        async with copying(broker, producer_for=producer_for) as once, once as transaction:
            with pytest.raises(RuntimeError, match=rf"does not know aiokafka \d.* has no attribute '{name}'"):
                await transaction.consume(1, CALL_S)

    run(scenario())


@pytest.mark.parametrize("name", ["_group_id", "_enable_auto_commit"])
def test_another_aiokafka_is_told_at_once(name: str) -> None:
    """Its consumer's attributes have other names."""

    async def scenario() -> None:
        consumer = aiokafka.AIOKafkaConsumer("in", group_id="copy", enable_auto_commit=False)
        delattr(consumer, name)
        with pytest.raises(RuntimeError, match=rf"does not know aiokafka \d.* has no attribute '{name}'"):
            exacta.exactly_once(consumer, lambda partition: partition)

    run(scenario())
