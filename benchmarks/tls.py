"""The cost of TLS beside none, by whose code it is: uvloop's own, the standard library's, or aiofastnet's.

Run `python -m benchmarks.tls [ROUNDS]`. In each round every kind of server runs once, by turns, and does three kinds of
work with librdkafka or with bare connections: much data (100 MB in and out again), one record in each transaction, and
2,000 connections that are opened and asked for their versions. The client's processor time is its own; the table has
what the client sees, and what the server's processor did. aiofastnet is installed by hand; without it it is left out.
"""

import asyncio
import importlib.util
import ssl
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import trustme
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.processes import Server, accepts_connections, free_ports, serving, usage

ROUNDS = 5
RECORDS, RECORD_BYTES = 100_000, 1_000
TRANSACTIONS = 300
CONNECTIONS = 2_000
AT_ONCE = 50

PLAIN, UVLOOP, STANDARD, AIOFASTNET = "plain", "uvloop", "standard library", "aiofastnet"
_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
_START = """
import asyncio, sys
from exacta.server import event_loop, process, tls
kind = sys.argv.pop(1)
if kind == "aiofastnet":
    import aiofastnet
    tls.secured = aiofastnet.connect_accepted_socket
if kind == "standard library":
    process.new_event_loop = asyncio.new_event_loop
from exacta.cli.serve import run
sys.exit(run(sys.argv[1:]))
"""

Work = Callable[[dict[str, Any], int, ssl.SSLContext | None], float]


def bulk_in(options: dict[str, Any], port: int, context: ssl.SSLContext | None) -> float:
    """Return MB/s of records that are produced."""
    producer = Producer(options | {"linger.ms": 5, "batch.size": 500_000, "queue.buffering.max.messages": RECORDS})
    began, value = time.perf_counter(), b"x" * RECORD_BYTES
    for _ in range(RECORDS):
        producer.produce("bulk", value, partition=0)
    assert producer.flush(120) == 0
    return RECORDS * RECORD_BYTES / 1e6 / (time.perf_counter() - began)


def bulk_out(options: dict[str, Any], port: int, context: ssl.SSLContext | None) -> float:
    """Return MB/s of records that are consumed."""
    consumer = Consumer(options | {"group.id": "g", "enable.auto.commit": False, "fetch.max.bytes": 4 << 20})
    consumer.assign([TopicPartition("bulk", 0, 0)])
    began, count = time.perf_counter(), 0
    while count < RECORDS:
        count += len(consumer.consume(10_000, 1))
    seconds = time.perf_counter() - began
    consumer.close()
    return RECORDS * RECORD_BYTES / 1e6 / seconds


def transactions(options: dict[str, Any], port: int, context: ssl.SSLContext | None) -> float:
    """Return transactions of one record, a second."""
    producer = Producer(options | {"transactional.id": "t", "linger.ms": 0})
    producer.init_transactions(60)
    began = time.perf_counter()
    for _ in range(TRANSACTIONS):
        producer.begin_transaction()
        producer.produce("t", b"x" * 100)
        producer.commit_transaction(60)
    return TRANSACTIONS / (time.perf_counter() - began)


def connections(options: dict[str, Any], port: int, context: ssl.SSLContext | None) -> float:
    """Return connections a second that are opened, asked once, and held until the last one is."""

    async def run() -> float:
        room, held = asyncio.Semaphore(AT_ONCE), []

        async def one() -> None:
            async with room:
                name = {} if context is None else {"server_hostname": "localhost"}
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, **name)  # type: ignore[arg-type]
                held.append(writer)
                writer.write(_VERSIONS)
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                await reader.readexactly(size)

        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
        seconds = time.perf_counter() - began
        for writer in held:
            writer.transport.abort()
        return CONNECTIONS / seconds

    return asyncio.run(run())


WORK: dict[str, tuple[Work, str]] = {
    "bulk in": (bulk_in, "MB/s"),
    "bulk out": (bulk_out, "MB/s"),
    "txn-1": (transactions, "transactions/s"),
    f"{CONNECTIONS:,} connections": (connections, "connections/s"),
}


def measure(kind: str, folder: Path, keystore: Path, ca: Path) -> dict[str, tuple[float, float]]:
    """Return for each kind of work what the client sees, and the seconds of the server's processor."""
    [port] = free_ports(1)
    file = folder / "server.properties"
    file.write_text(
        f"listeners={'PLAINTEXT' if kind == PLAIN else 'SSL'}://127.0.0.1:{port}\nssl.keystore.location={keystore}\n"
    )
    command = [sys.executable, "-c", _START, kind, "--data", str(folder / "data"), "--config", str(file)]
    options: dict[str, Any] = {"bootstrap.servers": f"127.0.0.1:{port}"}
    context = None
    if kind != PLAIN:
        options |= {"security.protocol": "SSL", "ssl.ca.location": str(ca)}
        context = ssl.create_default_context(cafile=str(ca))
    with serving(command, folder / "log") as server:
        server.wait_until(lambda: accepts_connections("127.0.0.1", port), 30)
        return {
            name: _with_processor(server, partial(work, options, port, context)) for name, (work, _) in WORK.items()
        }


def _with_processor(server: Server, work: Callable[[], float]) -> tuple[float, float]:
    before = usage(server.process)
    result = work()
    after = usage(server.process)
    assert before is not None
    assert after is not None
    return result, after.cpu_s - before.cpu_s


def main(rounds: int) -> None:
    """Run all kinds by turns, and print a table with medians, and the least and the most in brackets."""
    kinds = [PLAIN, UVLOOP, STANDARD]
    if importlib.util.find_spec("aiofastnet"):
        kinds.append(AIOFASTNET)
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        authority, keystore, ca = trustme.CA(), folder / "server.pem", folder / "ca.pem"
        authority.cert_pem.write_to_path(str(ca))
        authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(keystore))
        for number in range(rounds):
            for kind in kinds if number % 2 else kinds[::-1]:
                place = folder / f"{number}-{kind}"
                place.mkdir()
                for name, pair in measure(kind, place, keystore, ca).items():
                    found.setdefault((name, kind), []).append(pair)
                    print(f"{number} {kind}, {name}: {pair[0]:.1f}, {pair[1]:.2f} s", flush=True)
    print("| work | server | the client sees | processor of the server, s |\n|---|---|---|---|")
    for name, (_, unit) in WORK.items():
        for kind in kinds:
            seen, spent = zip(*found[name, kind], strict=True)
            print(f"| {name} | {kind} | {_cell(seen, '.0f')} {unit} | {_cell(spent, '.2f')} |")


def _cell(values: tuple[float, ...], form: str) -> str:
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
