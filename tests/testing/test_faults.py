"""The faults that a test asks for in one line: what real clients make of each."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

import exacta
from exacta.protocol.kafka.codec import encode_request
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from exacta.server.listeners import parse_endpoint
from exacta.testing import Fault
from tests.kafka.wire import Wire
from tests.testing.clients import CALL_S, servers
from tests.waiting import wait_until


def transactional(broker: exacta.Broker, **more: object) -> Producer:
    producer = Producer({**servers(broker), "transactional.id": "orders-1", **more})
    producer.init_transactions(CALL_S)
    return producer


def begun(producer: Producer, value: bytes) -> None:
    producer.begin_transaction()
    producer.produce("orders", value)
    assert producer.flush(CALL_S) == 0


def fates(broker: exacta.Broker) -> list[tuple[bytes | None, str]]:
    return [(each.value, str(each.fate)) for each in broker.records("orders", "uncommitted")]


# --- requests and answers ---------------------------------------------------------------------------------------------


def test_a_commit_whose_answer_is_lost_is_done_once(broker: exacta.Broker) -> None:
    producer = transactional(broker)
    begun(producer, b"v")
    fault = broker.faults.drop_answer("EndTxn")
    producer.commit_transaction(CALL_S)
    assert fault.happened
    assert fates(broker) == [(b"v", "committed")]


def test_the_answer_is_lost_after_the_request_was_carried_out(broker: exacta.Broker) -> None:
    producer = transactional(broker)
    begun(producer, b"v")
    seen: list[list[tuple[bytes | None, str]]] = []
    broker.faults.drop_answer("EndTxn", then=lambda: seen.append(fates(broker)))
    producer.commit_transaction(CALL_S)
    assert seen == [[(b"v", "committed")]]


def test_a_request_is_lost_before_it_is_carried_out(broker: exacta.Broker) -> None:
    producer = transactional(broker)
    begun(producer, b"v")
    seen: list[list[tuple[bytes | None, str]]] = []
    broker.faults.cut_connection("EndTxn", then=lambda: seen.append(fates(broker)))
    producer.commit_transaction(CALL_S)
    assert seen == [[(b"v", "open")]]
    assert fates(broker) == [(b"v", "committed")]


def test_a_broker_that_crashes_between_a_commit_and_its_answer(broker: exacta.Broker) -> None:
    producer = transactional(broker)
    begun(producer, b"v")
    broker.faults.drop_answer("EndTxn", then=lambda: broker.restart(clean=False))
    producer.commit_transaction(CALL_S)
    begun(producer, b"w")
    producer.commit_transaction(CALL_S)
    assert fates(broker) == [(b"v", "committed"), (b"w", "committed")]


def test_faults_of_one_request_are_met_in_their_order(broker: exacta.Broker) -> None:
    producer = Producer(servers(broker))
    dropped = broker.faults.drop_answer("Produce", times=2)
    refused = broker.faults.refuse("Produce", error="NOT_LEADER_OR_FOLLOWER")
    producer.produce("orders", b"v")
    assert not dropped.happened
    assert producer.flush(CALL_S) == 0
    assert dropped.met == 2
    assert refused.happened
    # Without idempotence each try is written that is carried out.
    assert fates(broker) == [(b"v", "committed")] * 3


def test_aiokafka_sends_again_what_was_refused_or_lost(broker: exacta.Broker) -> None:
    async def run() -> int:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True)
        await producer.start()
        try:
            broker.faults.refuse("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
            broker.faults.drop_answer("Produce")
            written = await producer.send_and_wait("orders", b"v")
        finally:
            await producer.stop()
        return written.offset

    assert asyncio.run(run()) == 0
    assert fates(broker) == [(b"v", "committed")]


def test_a_refused_request_is_not_carried_out(broker: exacta.Broker) -> None:
    producer = Producer({**servers(broker), "retries": 0})
    reported: list[KafkaError | None] = []
    broker.faults.refuse("Produce", error="MESSAGE_TOO_LARGE")
    producer.produce("orders", b"v", on_delivery=lambda error, _: reported.append(error))
    producer.flush(CALL_S)
    assert [each.code() for each in reported if each is not None] == [KafkaError.MSG_SIZE_TOO_LARGE]
    assert fates(broker) == []


def test_a_reader_goes_on_after_its_fetches_were_refused(broker: exacta.Broker) -> None:
    producer = Producer(servers(broker))
    producer.produce("orders", b"v")
    assert producer.flush(CALL_S) == 0
    fault = broker.faults.refuse("Fetch", error="NOT_LEADER_OR_FOLLOWER", times=2)
    consumer = Consumer({**servers(broker), "group.id": "g"})
    consumer.assign([TopicPartition("orders", 0, 0)])
    record = consumer.poll(CALL_S)
    assert record is not None
    assert record.value() == b"v"
    consumer.close()
    assert fault.happened


def arguments_of(fault: str, error: str) -> dict[str, Any]:
    """Return what a fault is armed with beside the API."""
    if fault == "refuse":
        return {"error": error}
    return {"seconds": 0.1} if fault == "delay" else {}


@pytest.mark.parametrize("fault", ["refuse", "drop_answer", "cut_connection", "delay"])
@pytest.mark.parametrize("library", ["aiokafka", "kafka-python"])
def test_other_readers_go_on_as_well(broker: exacta.Broker, library: str, fault: str) -> None:
    """The second one reads in a session, whose requests name only what has changed (KIP-227)."""
    producer = Producer(servers(broker))

    def write(value: bytes) -> None:
        producer.produce("orders", value)
        assert producer.flush(CALL_S) == 0

    def go_wrong() -> None:
        more = arguments_of(fault, "NOT_LEADER_OR_FOLLOWER")
        armed.append(getattr(broker.faults, fault)("Fetch", **more))
        write(b"second")

    armed: list[Fault] = []
    write(b"first")
    read: list[Any]
    if library == "aiokafka":
        read = asyncio.run(read_by_aiokafka(broker, go_wrong))
    else:
        read = read_by_kafka_python(broker, go_wrong)
    assert read == [b"first", b"second"]
    armed[0].wait(CALL_S)


READING = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}


async def read_by_aiokafka(broker: exacta.Broker, between: Callable[[], None]) -> list[bytes | None]:
    consumer = aiokafka.AIOKafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers, **READING)
    await consumer.start()
    try:
        first = await asyncio.wait_for(consumer.getone(), CALL_S)
        await asyncio.to_thread(between)
        return [first.value, (await asyncio.wait_for(consumer.getone(), CALL_S)).value]
    finally:
        await consumer.stop()


def read_by_kafka_python(broker: exacta.Broker, between: Callable[[], None]) -> list[bytes]:
    consumer = kafka.KafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers, **READING)
    try:
        first = next(consumer)
        between()
        return [first.value, next(consumer).value]
    finally:
        consumer.close()


@pytest.mark.parametrize("api", ["InitProducerId", "AddPartitionsToTxn", "TxnOffsetCommit", "EndTxn"])
def test_librdkafka_asks_again_where_a_coordinator_is_busy(broker: exacta.Broker, api: str) -> None:
    error = "COORDINATOR_LOAD_IN_PROGRESS" if api != "AddPartitionsToTxn" else "CONCURRENT_TRANSACTIONS"
    broker.faults.refuse(api, error=error)
    producer = transactional(broker)
    consumer = Consumer({**servers(broker), "group.id": "g"})
    begun(producer, b"v")
    producer.send_offsets_to_transaction([TopicPartition("orders", 0, 1)], consumer.consumer_group_metadata(), CALL_S)
    producer.commit_transaction(CALL_S)
    consumer.close()
    assert fates(broker) == [(b"v", "committed")]
    assert broker.offsets("g") == {("orders", 0): 1}


def test_an_answer_comes_late_and_those_behind_it_wait(broker: exacta.Broker) -> None:
    producer = Producer({**servers(broker), "linger.ms": 0, "enable.idempotence": True})
    producer.produce("orders", b"first")
    assert producer.flush(CALL_S) == 0
    broker.faults.delay("Produce", seconds=0.3)
    began = time.monotonic()
    producer.produce("orders", b"second")
    assert producer.flush(CALL_S) == 0
    assert time.monotonic() - began >= 0.3
    assert fates(broker) == [(b"first", "committed"), (b"second", "committed")]


def test_an_answer_is_late_for_a_client_that_gives_up(broker: exacta.Broker) -> None:
    producer = Producer({**servers(broker), "socket.timeout.ms": 100, "enable.idempotence": True})
    fault = broker.faults.delay("Produce", seconds=0.5)
    producer.produce("orders", b"v")
    assert producer.flush(CALL_S) == 0
    fault.wait(CALL_S)
    assert fates(broker) == [(b"v", "committed")]


@pytest.mark.parametrize("fault", ["refuse", "drop_answer", "cut_connection", "delay"])
@pytest.mark.parametrize("is_closed_meanwhile", [True, False])
def test_a_fault_leaves_no_memory_taken(broker: exacta.Broker, fault: str, is_closed_meanwhile: bool) -> None:
    more = arguments_of(fault, "INVALID_TXN_STATE")
    armed = getattr(broker.faults, fault)("EndTxn", **more)
    endpoint = parse_endpoint(broker.bootstrap_servers)
    wire = Wire((endpoint.host, endpoint.port))
    request = EndTxnRequest(transactional_id="x", producer_id=1, producer_epoch=0)
    frames = [b"".join(encode_request(request, 3, number, "c")) for number in range(3)]
    wire.socket.sendall(b"".join(frames))  # the later ones wait, or are lost with the first one
    if is_closed_meanwhile:
        wire.socket.close()
    armed.wait(CALL_S)
    wire.socket.close()
    assert broker._server is not None
    assert broker._server._broker is not None
    memory = broker._server._broker.memory
    wait_until(lambda: memory.requests.used_bytes == memory.answers.used_bytes == 0, CALL_S, "all to be given back")


def test_the_kits_own_questions_meet_no_fault(broker: exacta.Broker) -> None:
    fault = broker.faults.cut_connection("ListOffsets")
    assert broker.records("orders") == []
    assert not fault.met
    consumer = Consumer({**servers(broker), "group.id": "g"})
    consumer.get_watermark_offsets(TopicPartition("orders", 0), CALL_S)
    consumer.close()
    assert fault.happened


# --- the disk ---------------------------------------------------------------------------------------------------------


def test_a_sync_that_takes_long_holds_the_answer_back(broker: exacta.Broker) -> None:
    producer = Producer(servers(broker))
    broker.faults.slow_disk(seconds=0.3)
    began = time.monotonic()
    producer.produce("orders", b"v")
    assert producer.flush(CALL_S) == 0
    assert time.monotonic() - began >= 0.3


def test_a_full_disk_stops_the_broker_and_nothing_acknowledged_is_lost(
    broker: exacta.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    producer = Producer({**servers(broker), "enable.idempotence": True})
    producer.produce("orders", b"before")
    assert producer.flush(CALL_S) == 0
    fault = broker.faults.full_disk()
    producer.produce("orders", b"meanwhile")
    producer.poll(0)
    fault.wait(CALL_S)
    broker.restart(clean=False)
    assert producer.flush(CALL_S) == 0
    assert fates(broker) == [(b"before", "committed"), (b"meanwhile", "committed")]
    assert "No space left" in caplog.text


def test_a_broker_that_crashes_before_a_sync_starts_again(broker: exacta.Broker) -> None:
    producer = transactional(broker)
    begun(producer, b"v")
    fault = broker.faults.crash_at_next_sync()
    producer.commit_transaction(CALL_S)
    fault.wait(CALL_S)
    assert fates(broker) == [(b"v", "committed")]


def test_a_broker_that_crashes_may_stay_down(broker: exacta.Broker) -> None:
    producer = Producer({**servers(broker), "enable.idempotence": True})
    fault = broker.faults.crash_at_next_sync(restart=False)
    producer.produce("orders", b"v")
    producer.poll(0)
    fault.wait(CALL_S)
    broker.wait_until_stopped(CALL_S)
    assert not broker.is_running
    broker.start()
    assert producer.flush(CALL_S) == 0
    assert fates(broker) == [(b"v", "committed")]


# --- at once ----------------------------------------------------------------------------------------------------------


def test_a_producer_is_fenced(broker: exacta.Broker) -> None:
    producer = transactional(broker)
    begun(producer, b"v")
    broker.faults.fence("orders-1")
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(CALL_S)
    assert caught.value.args[0].code() == KafkaError._FENCED
    assert fates(broker) == [(b"v", "aborted")]
    with pytest.raises(ValueError, match=r"fence\('nobody'\): no producer has this transactional id"):
        broker.faults.fence("nobody")


def test_a_transaction_expires(broker: exacta.Broker) -> None:
    producer = transactional(broker)
    with pytest.raises(ValueError, match="it has no transaction open that time ends"):
        broker.faults.expire_transaction("orders-1")
    begun(producer, b"v")
    broker.faults.expire_transaction("orders-1")
    assert fates(broker) == [(b"v", "aborted")]
    assert [each.cause for each in broker.explain("orders-1").incidents][-1] == "time-out"
    with pytest.raises(KafkaException):
        producer.commit_transaction(CALL_S)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_rebalances(protocol: str) -> None:
    with exacta.Broker(group_consumer_heartbeat_interval_ms=50) as broker:
        broker.create_topic("orders", 1)
        check_that_a_group_rebalances(broker, {"classic": {"heartbeat.interval.ms": 50}}.get(protocol, {}), protocol)


def check_that_a_group_rebalances(broker: exacta.Broker, settings: Mapping[str, object], protocol: str) -> None:
    told: list[str] = []
    consumer = Consumer({**servers(broker), "group.id": "g", "group.protocol": protocol, **settings})
    consumer.subscribe(["orders"], on_assign=lambda *_: told.append("given"), on_revoke=lambda *_: told.append("taken"))
    with pytest.raises(ValueError, match=r"rebalance\('g'\): there is no such group"):
        broker.faults.rebalance("g")
    while told != ["given"]:
        consumer.poll(0.1)
    broker.faults.rebalance("g")
    while told != ["given", "taken", "given"]:
        consumer.poll(0.1)
    consumer.close()
