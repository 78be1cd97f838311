"""The embedded broker: what it can do, and that nothing of it is left."""

import asyncio
import errno
import gc
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import exacta
from exacta.adapters.local.files import PosixFiles
from exacta.config.errors import ConfigurationError
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.server.errors import ServerError
from exacta.server.listeners import parse_endpoint
from exacta.server.server import Server
from tests.testing.clients import connect, consume, produce


def what_is_open() -> set[str]:
    """Return what this process has open, without the directory listing itself."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_ten_brokers_leave_no_thread_socket_or_file() -> None:
    with exacta.Broker() as broker:  # what is imported and opened once, is
        produce(broker, b"v")
    gc.collect()  # a client that an earlier test has left would close its handles in the middle
    threads, handles = set(threading.enumerate()), what_is_open()
    directories = []
    for _ in range(10):
        with exacta.Broker() as broker:
            directories.append(broker.data)
            produce(broker, b"v")
            wire = connect(broker)  # still open when the broker stops
            assert consume(broker) == [b"v"]
        wire.socket.close()
    assert set(threading.enumerate()) == threads
    assert what_is_open() == handles
    assert not any(directory.exists() for directory in directories)


def test_options() -> None:
    with exacta.Broker(num_partitions=3, config={"auto.create.topics.enable": "true"}) as broker:
        wire = connect(broker)
        [topic] = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9).topics
        wire.socket.close()
    assert len(topic.partitions) == 3


def test_other_machines_may_connect_where_it_listens_on_every_address() -> None:
    with pytest.raises(ServerError, match=r"other machines reach PLAINTEXT on 0\.0\.0\.0:"):
        exacta.Broker(host="0.0.0.0").start()
    with exacta.Broker(host="0.0.0.0", allow_anonymous="PLAINTEXT") as broker:
        produce(broker, b"v")
        assert broker.bootstrap_servers.startswith("127.0.0.1:")
        assert consume(broker) == [b"v"]


def test_a_broker_in_a_coroutine() -> None:
    async def run() -> Path:
        async with exacta.Broker() as broker:
            await asyncio.to_thread(produce, broker, b"v")
            assert await asyncio.to_thread(consume, broker) == [b"v"]
            return broker.data

    assert not asyncio.run(run()).exists()


@pytest.mark.parametrize("accepts", [True, False])
def test_a_program_that_asks_for_three_replicas(accepts: bool) -> None:
    with exacta.Broker(accept_any_replication_factor=accepts) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        created = admin.create_topics([NewTopic("t", 2, 3)])
        if accepts:
            created["t"].result(30)
            produce(broker, b"v")
            assert [each.value for each in broker.records("t")] == [b"v"]
        else:
            with pytest.raises(KafkaException, match="replication factor 3 is not possible: there is one broker"):
                created["t"].result(30)


def test_wrong_options_are_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean num\.partitions"):
        exacta.Broker(num_partition=3)
    for port in (-1, 65536, "9092", True, None):
        with pytest.raises(ValueError, match="port must be a number from 0 to 65535, not "):
            exacta.Broker(port=port)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not an empty name"):
        exacta.Broker(data="")


def test_it_starts_again_on_the_same_port_after_a_crash() -> None:
    broker = exacta.Broker().start()
    try:
        produce(broker, b"acknowledged")
        before = broker.bootstrap_servers
        broker.kill()
        broker.start()
        assert broker.bootstrap_servers == before
        assert consume(broker) == [b"acknowledged"]
    finally:
        directory = broker.data
        broker.close()
    assert not directory.exists()


def test_data_and_port_stay_until_the_end_of_the_context() -> None:
    with exacta.Broker() as broker:
        produce(broker, b"1")
        directory, address = broker.data, broker.bootstrap_servers
        broker.stop()
        assert broker.data == directory
        broker.start()
        produce(broker, b"2")
        for clean in (True, False):
            assert broker.restart(clean=clean) is broker
            assert (broker.data, broker.bootstrap_servers) == (directory, address)
            assert consume(broker) == [b"1", b"2"]
        broker.stop()
    assert not directory.exists()


def test_a_restart_is_clean_or_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[str] = []

    def noting(name: str, end: Callable[[Server], object]) -> Callable[[Server], object]:
        def noted(server: Server) -> object:
            ends.append(name)
            return end(server)

        return noted

    for name in ("stop", "abandon"):
        monkeypatch.setattr(Server, name, noting(name, getattr(Server, name)))
    with exacta.Broker() as broker:
        broker.restart()
        broker.restart(clean=False)
    assert ends == ["stop", "abandon", "stop"]


def test_a_broker_that_was_closed_begins_with_nothing() -> None:
    broker = exacta.Broker().start()
    produce(broker, b"gone")
    first = broker.data
    broker.close()
    broker.close()
    assert not first.exists()
    with pytest.raises(ServerError, match="has not been started"):
        _ = broker.data
    with broker:
        assert broker.data != first
        produce(broker, b"new")
        assert consume(broker) == [b"new"]


def test_librdkafka_goes_on_after_a_crash_with_its_defaults() -> None:
    """Its issue 5511: where nothing wakes it up, `send_offsets_to_transaction` waits for ever (`lost_coordinators`)."""
    with exacta.Broker() as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        producer = Producer({**servers, "transactional.id": "x"})
        consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False})
        producer.init_transactions()
        consumer.subscribe(["t"])

        def turn(value: bytes) -> None:
            while (record := consumer.poll(0.1)) is None or record.value() != value:
                pass
            producer.begin_transaction()
            producer.produce("u", value)
            offset = TopicPartition("t", 0, (record.offset() or 0) + 1)
            producer.send_offsets_to_transaction([offset], consumer.consumer_group_metadata())
            producer.commit_transaction()

        produce(broker, b"1")
        turn(b"1")
        for value in (b"2", b"3"):
            broker.restart(clean=value == b"3")
            produce(broker, value)
            turning = threading.Thread(target=turn, args=(value,), daemon=True)
            turning.start()
            turning.join(60)
            assert not turning.is_alive(), "it waits for ever"
        [committed] = consumer.committed([TopicPartition("t", 0)], 10)
        assert committed.offset == 3
        consumer.close()


def test_a_crash_closes_connections_without_an_answer() -> None:
    with exacta.Broker() as broker:
        wire = connect(broker)
        wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        partition = FetchPartition(partition=0, partition_max_bytes=1)
        wire.send(
            FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], min_bytes=1, max_wait_ms=60_000), 11
        )
        broker.kill()
        assert wire.is_closed()
        wire.socket.close()


def test_stopping_answers_who_waits() -> None:
    with exacta.Broker() as broker:
        wire = connect(broker)
        wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        partition = FetchPartition(partition=0, partition_max_bytes=1)
        request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], min_bytes=1, max_wait_ms=60_000)
        sent = wire.send(request, 11)
        other = connect(broker)
        other.ask(MetadataRequest(topics=[]), 9)  # answered after the fetch was seen
        other.socket.close()
        broker.stop()
        assert wire.receive(request, 11)[0] == sent
        wire.socket.close()


def test_stopping_twice_and_before_a_start_is_harmless() -> None:
    broker = exacta.Broker()
    broker.stop()
    broker.start()
    broker.stop()
    broker.stop()
    broker.close()


def test_misuse_is_told() -> None:
    broker = exacta.Broker()
    with pytest.raises(ServerError, match="has not been started"):
        _ = broker.bootstrap_servers
    with pytest.raises(ServerError, match="has not been started"):
        _ = broker.data
    with broker, pytest.raises(ServerError, match="running already"):
        broker.start()


def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    with exacta.Broker(tmp_path) as first:
        second = exacta.Broker(tmp_path)
        with pytest.raises(ServerError, match="in use"):
            second.start()
        third = exacta.Broker(port=parse_endpoint(first.bootstrap_servers).port)
        with pytest.raises(ServerError, match="address already in use"):
            third.start()
    assert set(threading.enumerate()) == threads


def test_a_start_that_is_cancelled_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        running = asyncio.ensure_future(serve())
        plain = Server.open

        def cancelled(server: Server) -> None:
            loop.call_soon_threadsafe(running.cancel)
            plain(server)

        monkeypatch.setattr(Server, "open", cancelled)
        with pytest.raises(asyncio.CancelledError):
            await running

    async def serve() -> None:
        async with broker:
            await asyncio.Event().wait()

    broker = exacta.Broker()
    asyncio.run(run())
    assert not broker.is_running
    with pytest.raises(ServerError, match="has not been started"):
        _ = broker.data


def test_an_interrupt_while_it_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C does so, or a time-out of the test. Nobody waits then for a broker that comes up and serves."""
    plain = Server.open

    def interrupted(server: Server) -> None:
        # The broker's thread is in here: the one that waits in `start` gets a signal now.
        os.kill(os.getpid(), signal.SIGINT)
        plain(server)

    before = set(threading.enumerate())  # brokers of the session's fixtures are among them
    monkeypatch.setattr(Server, "open", interrupted)
    broker = exacta.Broker()
    disposition = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            broker.start()
    finally:
        signal.signal(signal.SIGINT, disposition)
    monkeypatch.undo()
    assert not [each for each in threading.enumerate() if each.name == "exacta-broker" and each not in before]
    with broker:
        assert broker.bootstrap_servers


def test_a_broker_that_does_not_run_answers_nothing() -> None:
    """Its questions do not wait a minute for somebody who starts it."""
    with exacta.Broker() as broker:
        for end in (broker.stop, broker.kill):
            end()
            with pytest.raises(ServerError, match="the broker does not run"):
                broker.records("t")
            broker.start()


def test_two_brokers_side_by_side() -> None:
    with exacta.Broker() as one, exacta.Broker() as two:
        produce(one, b"1")
        produce(two, b"2")
        assert (consume(one), consume(two)) == ([b"1"], [b"2"])


def test_a_journal_that_fails_stops_the_broker_and_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with exacta.Broker() as broker:
        produce(broker, b"v")
        monkeypatch.setattr(PosixFiles, "write", full)
        with pytest.raises(ConnectionError):
            produce(broker, b"lost")
    assert "No space left" in caplog.text


def test_it_is_shown_with_address_and_state() -> None:
    broker = exacta.Broker()
    assert repr(broker) == "<exacta.Broker, not running>"
    with broker:
        assert repr(broker) == f"<exacta.Broker at {broker.bootstrap_servers}, running>"
        broker.kill()
        assert repr(broker) == f"<exacta.Broker at {broker.bootstrap_servers}, not running>"
