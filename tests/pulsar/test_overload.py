"""Clients of Pulsar that ask for much and take nothing, or make much grow: others are served, in bounded memory."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.session import Outgoing
from tests.pulsar.by_hand import send_frame
from tests.pulsar.wire import Wire
from tests.server.test_server import Process
from tests.test_overload import most_resident_mb

SHARED = pb.CommandSubscribe.Shared
GREEDY = 100
LARGE = 30
CONSUMERS = 2_000
MESSAGES = 24_000
MOST_RUNS, MOST_HANDLES = 10_000, 10_000
BUDGET_MB = 64
MOST_MB = 400
"""The process itself, both budgets, what each connection may hold in any case, and what the limits let grow."""


Connect = Callable[[], Wire]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    """A broker with small budgets."""
    options = ("queued.max.request.bytes", "queued.max.response.bytes")
    settings = [each for name in options for each in ("--set", f"{name}={BUDGET_MB << 20}")]
    process = Process(
        tmp_path / "data", "--pulsar-listen", "127.0.0.1:0", *settings, "--set", "connections.max.stall.ms=500"
    )
    yield process
    process.clean_up()


@pytest.fixture
def connect(server: Process) -> Iterator[Connect]:
    """A function that connects to it."""
    assert server.process.stdout is not None
    url = f"pulsar://{server.process.stdout.readline().split()[-1]}"
    opened: list[Wire] = []

    def connected() -> Wire:
        opened.append(Wire(url))
        return opened[-1]

    yield connected
    for wire in opened:
        wire.close()


def ask_all(wire: Wire, asked: list[Outgoing]) -> list[Any]:
    """Send commands in one write; return their answers."""
    wire.send_bytes(b"".join(each.data for each in asked))
    return [wire.receive() for _ in asked]


def consumers_that_do_not_read(connect: Connect) -> None:
    writer = connect()
    writer.open_producer("large")
    for sequence in range(LARGE):
        assert isinstance(writer.produce(b"x" * 1_000_000, sequence=sequence), pb.CommandSendReceipt)
    greedy = [connect() for _ in range(GREEDY)]
    for number, wire in enumerate(greedy):
        assert isinstance(wire.subscribe("large", f"s{number}", kind=SHARED), pb.CommandSuccess)
        wire.permit()
    half = connect()
    half.socket.setblocking(False)
    half.socket.send(struct.pack(">I", 5 << 20) + bytes(2 << 20))  # as much of it as gets away


def many_consumers(connect: Connect) -> None:
    wire = connect()
    consumers = [wire.session.subscribe("many", f"s{number % 50}", number, SHARED) for number in range(CONSUMERS)]
    answers = ask_all(wire, consumers)
    assert {type(each) for each in answers} == {pb.CommandSuccess}


def transactions_that_nobody_ends(connect: Connect) -> None:
    wire = connect()
    begins = [wire.session.begin(900_000) for _ in range(MOST_HANDLES + 100)]
    answers = [each for start in range(0, len(begins), 500) for each in ask_all(wire, begins[start : start + 500])]
    refused = [each for each in answers if each.HasField("error")]
    assert len(refused) == len(begins) - MOST_HANDLES // 2, "the other half is for other hosts"
    assert {each.error for each in refused} == {pb.ServerError.TooManyRequests}


def acknowledgements_with_holes(connect: Connect) -> None:
    """Acknowledge every second message, until that is refused."""
    wire = connect()
    wire.open_producer("holes")
    for start in range(0, MESSAGES, 1000):
        values = [b"x"] * 1000
        wire.send_bytes(b"".join(send_frame(value, sequence=start + n) for n, value in enumerate(values)))
        for _ in values:
            assert isinstance(wire.receive(), pb.CommandSendReceipt)
    assert isinstance(wire.subscribe("holes", kind=SHARED), pb.CommandSuccess)
    ledger = wire.request(pb.CommandGetLastMessageId(consumer_id=1)).last_message_id.ledger_id
    answers = []
    for start in range(1, MESSAGES, 2000):
        ids = [pb.MessageIdData(ledger_id=ledger, entry_id=entry) for entry in range(start, start + 2000, 2)]
        answers.append(wire.acknowledge(*ids))
    assert [each.HasField("error") for each in answers] == [False] * (MOST_RUNS // 1000) + [True] * 2
    assert {each.error for each in answers[-2:]} == {pb.ServerError.TooManyRequests}
    assert all(each.message for each in answers[-2:])


def test_clients_without_measure_hold_up_nobody(server: Process, connect: Connect, reports: list[str]) -> None:
    before_mb = most_resident_mb(server)
    consumers_that_do_not_read(connect)
    many_consumers(connect)
    transactions_that_nobody_ends(connect)
    acknowledgements_with_holes(connect)

    good = connect()
    good.open_producer("good")
    assert isinstance(good.subscribe("good", kind=SHARED), pb.CommandSuccess)
    good.permit()
    for sequence in range(50):
        good.send_bytes(send_frame(b"y" * 200_000, sequence=sequence))
        kinds = {type(good.receive()), type(good.receive())}
        assert kinds == {pb.CommandSendReceipt, pb.CommandMessage}

    most_mb = most_resident_mb(server)
    reports.append(f"clients of Pulsar's without measure: {before_mb} MB before, {most_mb} MB at most")
    assert most_mb < MOST_MB


def test_a_frame_of_nothing_but_ids_is_bounded(connect: Connect) -> None:
    wire = connect()
    assert isinstance(wire.subscribe("t", kind=SHARED), pb.CommandSuccess)
    ids = [pb.MessageIdData(ledger_id=0, entry_id=0)] * 300_000
    ack = wire.session.acknowledge(1, ids).data
    assert len(ack) > 1 << 20
    wire.send_bytes(ack)
    assert wire.is_closed()
