"""The embedded broker: what it can do, and that nothing of it is left."""

import errno
import os
import threading
from pathlib import Path

import pytest

import exacta
from exacta.adapters.local.files import PosixFiles
from exacta.config import ConfigurationError
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.server import ServerError, parse_endpoint
from tests.kafka.wire import Wire, batch, values_in


def connect(broker: exacta.Broker) -> Wire:
    endpoint = parse_endpoint(broker.bootstrap_servers)
    return Wire((endpoint.host, endpoint.port))


def produce(broker: exacta.Broker, value: bytes) -> None:
    data = PartitionProduceData(index=0, records=batch(value))
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    wire = connect(broker)
    with wire.socket:
        wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        assert wire.ask(request, 9).responses[0].partition_responses[0].error_code == ErrorCode.NONE


def consume(broker: exacta.Broker) -> list[bytes]:
    wire = connect(broker)
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    response = wire.ask(FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], min_bytes=1), 11)
    wire.socket.close()
    return values_in(response.responses[0].partitions[0].records)


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


def test_a_given_directory_is_kept(tmp_path: Path) -> None:
    with exacta.Broker(tmp_path / "data") as broker:
        produce(broker, b"kept")
    with exacta.Broker(str(tmp_path / "data")) as broker:
        assert consume(broker) == [b"kept"]


def test_options() -> None:
    with exacta.Broker(num_partitions=3, config={"auto.create.topics.enable": "true"}) as broker:
        wire = connect(broker)
        [topic] = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9).topics
        wire.socket.close()
    assert len(topic.partitions) == 3


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
        broker.stop()
    assert not directory.exists()


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
