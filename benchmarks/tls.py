"""The cost of TLS beside none, by whose code it is (uvloop's, the standard library's, aiofastnet's), and of a login.

Run `python -m benchmarks.tls [ROUNDS [KIND,…]]`, such as `python -m benchmarks.tls 5 plain,uvloop,rules`. In each round
every kind of server runs once, by turns, and does three kinds of work with librdkafka or with bare connections: much
data (100 MB in and out again), one record in each transaction, and 2,000 connections that are opened and asked for
their versions. `rules` is uvloop's TLS with a login by SCRAM-SHA-512 on each connection. Its user has the rights for
this work and no others, and there are a thousand more rules. The client's processor time is its own; the table has what
the client sees, and what the server's processor did. aiofastnet is installed by hand; without it it is left out.
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
from exacta.client.access_rules import AccessRule, add_rules
from exacta.client.routing import Client
from exacta.client.users import set_password
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.protocol.kafka.codec import decode_response, encode_request
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from exacta.protocol.kafka.schema import Message
from exacta.protocol.sasl.scram import ALGORITHMS
from exacta.protocol.sasl.scram_client import ScramClient

ROUNDS = 5
RECORDS, RECORD_BYTES = 100_000, 1_000
TRANSACTIONS = 300
CONNECTIONS = 2_000
AT_ONCE = 50

PLAIN, UVLOOP, STANDARD, AIOFASTNET, RULES = "plain", "uvloop", "standard library", "aiofastnet", "rules"
_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
MECHANISM, USER, PASSWORD = "SCRAM-SHA-512", "alice", "a password"
OTHER_RULES = 1_000
_RIGHTS = [
    *[("Topic", name, right) for name in ("bulk", "t") for right in ("Create", "Write", "Read")],
    ("Group", "g", "Read"),
    ("TransactionalId", "t", "Write"),
]
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
                if "sasl.username" in options:
                    await _log_in(reader, writer)
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


async def _log_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Log in by SCRAM; the client derives its keys once, and the server never does."""

    async def ask(request: Message, version: int) -> Any:
        for part in encode_request(request, version, 1, None):
            writer.write(part)
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        response = HANDSHAKES[type(request)]
        return decode_response(response, version, memoryview(await reader.readexactly(size)))[1]

    login = ScramClient(ALGORITHMS[MECHANISM], USER, PASSWORD)
    assert (await ask(SaslHandshakeRequest(mechanism=MECHANISM), 1)).error_code == 0
    first = await ask(SaslAuthenticateRequest(auth_bytes=login.first()), 1)
    last = await ask(SaslAuthenticateRequest(auth_bytes=login.final(bytes(first.auth_bytes))), 1)
    login.verify(bytes(last.auth_bytes))


HANDSHAKES: dict[type, Any] = {
    SaslHandshakeRequest: SaslHandshakeResponse,
    SaslAuthenticateRequest: SaslAuthenticateResponse,
}


def _give_rights(address: str) -> None:
    """Make the user and its rules, and those of others."""
    with Client(address) as client:
        set_password(client, USER, PASSWORD, MECHANISM)
        rules = [
            AccessRule(f"User:{USER}", "Allow", right, kind, "Literal", name, "*") for kind, name, right in _RIGHTS
        ]
        rules += [
            AccessRule(f"User:u{each}", "Allow", "Read", "Topic", "Literal", f"topic-{each}", "*")
            for each in range(OTHER_RULES)
        ]
        for begin in range(0, len(rules), 500):
            add_rules(client, rules[begin : begin + 500])


WORK: dict[str, tuple[Work, str]] = {
    "bulk in": (bulk_in, "MB/s"),
    "bulk out": (bulk_out, "MB/s"),
    "txn-1": (transactions, "transactions/s"),
    f"{CONNECTIONS:,} connections": (connections, "connections/s"),
}


def measure(kind: str, folder: Path, keystore: Path, ca: Path) -> dict[str, tuple[float, float]]:
    """Return for each kind of work what the client sees, and the seconds of the server's processor."""
    port, local = free_ports(2)
    protocol = {PLAIN: "PLAINTEXT", RULES: "SASL_SSL"}.get(kind, "SSL")
    lines = [f"listeners={protocol}://127.0.0.1:{port}", f"ssl.keystore.location={keystore}"]
    if kind == RULES:
        lines[0] += f",PLAINTEXT://127.0.0.1:{local}"
        lines += [f"authorizer.class.name={STANDARD_AUTHORIZER}", "super.users=User:ANONYMOUS"]
    file = folder / "server.properties"
    file.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-c", _START, kind, "--data", str(folder / "data"), "--config", str(file)]
    options: dict[str, Any] = {"bootstrap.servers": f"127.0.0.1:{port}"}
    context = None
    if kind != PLAIN:
        options |= {"security.protocol": protocol, "ssl.ca.location": str(ca)}
        context = ssl.create_default_context(cafile=str(ca))
    if kind == RULES:
        options |= {"sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": PASSWORD}
    with serving(command, folder / "log") as server:
        server.wait_until(lambda: accepts_connections("127.0.0.1", port), 30)
        if kind == RULES:
            _give_rights(f"127.0.0.1:{local}")
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


def main(rounds: int, kinds: list[str]) -> None:
    """Run the kinds by turns, and print a table with medians, and the least and the most in brackets."""
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
    fast = [AIOFASTNET] if importlib.util.find_spec("aiofastnet") else []
    given = sys.argv[2].split(",") if len(sys.argv) > 2 else [PLAIN, UVLOOP, STANDARD, *fast, RULES]
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS, given)
