"""Two thousand connections at once to a broker of its own process: all answered, in order, in bounded memory."""

import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from exacta.protocol.kafka.codec import encode_request
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from tests.kafka.wire import Wire, batch, values_in
from tests.server.test_server import Process

CONNECTIONS = 2_000
IDLE = 300
PARTITIONS = 20
ROUNDS = 2
GREEDY = 40
LARGE = 20
BUDGET_MB = 64
MOST_MB = 400
"""The process itself, both budgets, 2,000 connections with what each may hold in any case, and as much again."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    """A broker with small budgets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * CONNECTIONS + 1_000
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"only {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    options = ("queued.max.request.bytes", "queued.max.response.bytes")
    settings = [each for name in options for each in ("--set", f"{name}={BUDGET_MB << 20}")]
    process = Process(tmp_path / "data", *settings, "--set", "connections.max.stall.ms=500")
    yield process
    process.clean_up()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def produce(number: int, producer_id: int, sequence: int) -> ProduceRequest:
    records = batch(b"%d-%d" % (number, sequence), producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    data = PartitionProduceData(index=number % PARTITIONS, records=records)
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def fetch(topic: str, partition: int, offset: int = 0) -> FetchRequest:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 30)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 30, topics=topics)


def consume(wire: Wire, topic: str, partition: int, offset: int) -> list[bytes]:
    answer = wire.ask(fetch(topic, partition, offset), 11)
    return values_in(answer.responses[0].partitions[0].records)


def most_resident_mb(server: Process) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) >> 10


def attack(server: Process) -> None:
    """Leave connections behind that ask for much and take nothing, or announce much and send half of it."""
    writer = server.connect()
    for _ in range(LARGE):
        data = PartitionProduceData(index=0, records=batch(b"x" * 1_000_000))
        answer = writer.ask(
            ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="large", partition_data=[data])]), 9
        )
        assert answer.responses[0].partition_responses[0].error_code == 0
    for _ in range(GREEDY):
        greedy = server.connect()
        for _ in range(50):
            greedy.send(fetch("large", 0), 11)
        half = server.connect()
        half.socket.setblocking(False)
        half.socket.send(struct.pack(">i", 90 << 20) + bytes(4 << 20))  # as much of it as gets away


def test_two_thousand_connections(server: Process, reports: list[str]) -> None:
    first = server.connect()
    topics = [
        CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1),
        CreatableTopic(name="large", num_partitions=1, replication_factor=1),
    ]
    assert {each.error_code for each in first.ask(CreateTopicsRequest(topics=topics), 5).topics} == {0}
    before_mb = most_resident_mb(server)
    idle = [server.connect() for _ in range(IDLE)]
    wires = [server.connect() for _ in range(CONNECTIONS - IDLE - 2 * GREEDY - 2)]
    attack(server)

    init = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    for wire in wires:
        wire.send(init, 4)
    producer_ids = [wire.receive(init, 4)[1].producer_id for wire in wires]
    assert len(set(producer_ids)) == len(wires)

    heartbeat = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
    sent: list[list[int]] = []
    for number, (wire, producer_id) in enumerate(zip(wires, producer_ids, strict=True)):
        requests = [produce(number, producer_id, sequence) for sequence in range(ROUNDS)]
        frames = [encode_request(each, 9, 100 + place, "c") for place, each in enumerate(requests)]
        frames.append(encode_request(heartbeat, 2, 100 + ROUNDS, "c"))
        wire.socket.sendall(b"".join(part for frame in frames for part in frame))
        sent.append([100 + place for place in range(ROUNDS + 1)])
    written: dict[int, dict[int, bytes]] = {partition: {} for partition in range(PARTITIONS)}
    for number, (wire, numbers) in enumerate(zip(wires, sent, strict=True)):
        for sequence, expected in enumerate(numbers[:-1]):
            correlation_id, answer = wire.receive(produce(0, 0, 0), 9)
            [partition] = answer.responses[0].partition_responses
            assert (correlation_id, partition.error_code) == (expected, 0)
            assert partition.base_offset not in written[partition.index]
            written[partition.index][partition.base_offset] = b"%d-%d" % (number, sequence)
        assert wire.receive(heartbeat, 2)[0] == numbers[-1]

    read: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    for partition, values in read.items():
        while found := consume(wires[partition], "t", partition, len(values)):
            values += found
        assert values == [written[partition][offset] for offset in range(len(values))]
        assert len(values) == len(written[partition])
    assert sum(map(len, read.values())) == ROUNDS * len(wires)

    large: list[bytes] = []
    while len(large) < LARGE:  # waits for room until readers that do not read are given up
        large += consume(first, "large", 0, len(large))
    assert large == [b"x" * 1_000_000] * LARGE

    for wire in idle:
        assert wire.ask(heartbeat, 2).error_code != 0
    most_mb = most_resident_mb(server)
    reports.append(f"{CONNECTIONS} connections: the broker held {before_mb} MB before, {most_mb} MB at most")
    assert most_mb < MOST_MB
