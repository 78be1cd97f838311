"""Connections of the web front over real sockets: pipelining, and the bounds on time, memory and turns."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from exacta.config.options import configure
from exacta.front.doors import Door, Endpoint
from exacta.server.event_loop import new_event_loop
from exacta.web import connection as web_connection
from exacta.web import server as web_server
from exacta.web.connection import WebConnection
from exacta.web.requests import Unread, read_body
from exacta.web.server import WebServer

ANSWER_SECONDS = 10
DOOR = Door(front="web", name="WEB", endpoint=Endpoint("127.0.0.1", 0))
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Gate:
    """Work on a request that waits until a test opens the gate."""

    def __init__(self) -> None:
        self.begun, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def __call__(self) -> None:
        self.begun.set()
        await self.may_go_on.wait()


class Web:
    """A web front of its own whose application tells the length of the body, after what `before` awaits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.served: set[WebConnection] = set()
        self.ended = asyncio.Event()
        self.before: Callable[[], Awaitable[None]] | None = None
        self.front = WebServer(configure({}), loop, self._let_in, self._forget)
        self.front.serve(self._answer)
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []

    def _let_in(self, connection: WebConnection) -> bool:
        self.served.add(connection)
        return True

    def _forget(self, connection: WebConnection) -> None:
        self.served.remove(connection)
        self.ended.set()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        if self.before is not None:
            await self.before()
        try:
            body = await read_body(Request(scope, receive))
            await PlainTextResponse(f"{scope['path']} {len(body)}")(scope, receive, send)
        except Unread as unread:
            await unread.answer(scope, receive, send)

    async def connect(self) -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        return reader, writer


@asynccontextmanager
async def serving() -> AsyncIterator[Web]:
    loop = asyncio.get_running_loop()
    web = Web(loop)
    listening = await loop.create_server(lambda: web.front.connection(DOOR), "127.0.0.1", 0)
    web.port = listening.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        listening.close()
        for connection in list(web.served):
            connection.abort()
        for writer in web.writers:
            writer.transport.abort()
        while web.served:
            await asyncio.sleep(0)


def run(scenario: Callable[[], Any]) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(asyncio.wait_for(scenario(), ANSWER_SECONDS))


def get(path: str = "/a", *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def put(body: bytes) -> bytes:
    return b"PUT /b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read one answer; return its status and its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    [size] = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
    return int(lines[0].split()[1]), await reader.readexactly(size)


async def ends(reader: asyncio.StreamReader) -> bool:
    """Wait until the other side closes, in whichever way; False: something has come before."""
    try:
        return await reader.read(1) == b""
    except ConnectionResetError:
        return True


def test_requests_on_one_connection_are_answered_in_order_however_they_come() -> None:
    async def scenario() -> None:
        async with serving() as web:
            reader, writer = await web.connect()
            for _ in range(2):
                writer.write(get())
                assert await answer(reader) == (200, b"/a 0")
            writer.write(b"".join(get(f"/{number}") for number in range(50)) + put(b"x" * 100_000))
            for number in range(50):
                assert await answer(reader) == (200, f"/{number} 0".encode())
            assert (await answer(reader))[0] == 413

    run(scenario)


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_who_asks_for_another_protocol_is_answered_by_http_without_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture, protocol: str
) -> None:
    """Java's own client asks for h2c with every request."""

    async def scenario() -> None:
        async with serving() as web:
            reader, writer = await web.connect()
            for _ in range(2):
                writer.write(get("/a", "Connection: Upgrade, HTTP2-Settings", f"Upgrade: {protocol}"))
                assert await answer(reader) == (200, b"/a 0")

    with caplog.at_level(logging.INFO):
        run(scenario)
    assert caplog.messages == []


def test_what_is_sent_ahead_takes_little_memory() -> None:
    async def scenario() -> None:
        async with serving() as web:
            may_go_on, held = asyncio.Event(), 0

            async def look() -> None:
                nonlocal held
                [connection] = web.served
                held = max(held, len(connection.conn.trailing_data[0]))
                await asyncio.wait((asyncio.ensure_future(may_go_on.wait()),), timeout=0.001)

            web.before = look
            reader, writer = await web.connect()
            writer.write(get("/" + "x" * 4_000) * 2_000)  # 8 MB
            for _ in range(100):
                await answer(reader)
            may_go_on.set()
            for _ in range(1_900):
                await answer(reader)
            assert 0 < held < 1 << 20

    run(scenario)


def test_a_body_that_nobody_reads_is_not_read_on() -> None:
    async def scenario() -> None:
        async with serving() as web:
            gate = web.before = Gate()
            _, writer = await web.connect()
            writer.write(put(b"x" * (8 << 20)))
            await gate.begun.wait()
            [connection] = web.served
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(connection.cycle.body) < 1 << 20
            assert connection.flow.read_paused
            gate.may_go_on.set()

    run(scenario)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost:", id="half a request"),
        pytest.param(put(b"x" * 10)[:-1], id="half a body"),
        pytest.param(get() + b"GET", id="half a request behind a whole one"),
    ],
)
def test_who_does_not_send_a_whole_request_in_time_is_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(web_connection, "REQUEST_SECONDS", 0.05)

    async def scenario() -> None:
        async with serving() as web:
            reader, writer = await web.connect()
            writer.write(sent)
            assert (b"200 OK" in await reader.read()) is sent.startswith(get())
            await web.ended.wait()
            assert not web.served

    run(scenario)


def test_an_answer_that_does_not_come_in_time_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_connection, "REQUEST_SECONDS", 0.05)

    async def scenario() -> None:
        async with serving() as web:
            never = asyncio.Event()

            async def wait() -> None:
                await never.wait()

            web.before = wait
            reader, writer = await web.connect()
            writer.write(get())
            assert await ends(reader)
            never.set()

    run(scenario)


def test_who_sends_no_further_request_is_closed_and_says_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_connection, "REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(web_server, "IDLE_SECONDS", 0.01)

    async def scenario() -> None:
        async with serving() as web:
            reader, writer = await web.connect()
            writer.write(get())
            assert (await answer(reader))[0] == 200
            assert await reader.read() == b""

    run(scenario)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(get("/a", f"X: {'x' * 20_000}")[:-1], id="long headers"),
        pytest.param(b"GET " + b"x" * 20_000, id="a long path"),
        pytest.param(get("/a", "Content-Length: x"), id="no length"),
        pytest.param(get("/a", "Content-Length: 2", "Content-Length: 1"), id="two lengths"),
    ],
)
def test_what_is_no_request_is_told_so_and_closed(caplog: pytest.LogCaptureFixture, sent: bytes) -> None:
    async def scenario() -> None:
        async with serving() as web:
            reader, writer = await web.connect()
            writer.write(sent)
            assert (await reader.read()).startswith(b"HTTP/1.1 400 ")

    run(scenario)
    assert [record.name for record in caplog.records] == ["exacta.web"]


def test_a_client_that_speaks_tls_is_closed_and_the_operator_told_so(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving() as web:
            reader, writer = await web.connect()
            writer.write(b"\x16\x03\x01\x02\x00\x01\x00")
            assert await reader.read() == b""

    run(scenario)
    [told] = caplog.messages
    assert "a TLS handshake came to a door for HTTP, which speaks no TLS" in told


def test_nonsense_behind_half_an_answer_ends_the_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving() as web:
            reader, writer = await web.connect()
            begin = b"PUT /b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
            begun = asyncio.Event()

            async def note() -> None:
                begun.set()

            web.before = note
            writer.write(begin)
            await begun.wait()
            writer.write(b"nonsense\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
            other_reader, other = await web.connect()
            other.write(get())
            assert (await answer(other_reader))[0] == 200

    caplog.set_level(logging.ERROR)
    run(scenario)
    assert not caplog.records


@pytest.mark.parametrize(
    "half", [b"", b"GET /a HT", b"PUT /b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf"]
)
def test_half_requests_shut_nobody_out(monkeypatch: pytest.MonkeyPatch, half: bytes) -> None:
    monkeypatch.setattr(web_server, "MOST_CONNECTIONS", 4)

    async def scenario() -> None:
        async with serving() as web:
            halves = [await web.connect() for _ in range(4)]
            for _, writer in halves:
                writer.write(half)
            while not all(each.transport.get_extra_info("socket") for each in web.served) or len(web.served) < 4:
                await asyncio.sleep(0)
            for reader, _ in halves:
                new_reader, new = await web.connect()
                new.write(get())
                assert (await answer(new_reader))[0] == 200
                new.close()
                assert await ends(reader), "the one that has waited longest makes room"
                while len(web.served) > 3:
                    await asyncio.sleep(0)
                filler = await web.connect()
                filler[1].write(half)
                while len(web.served) < 4:
                    await asyncio.sleep(0)

    run(scenario)


def test_a_connection_whose_request_was_answered_last_makes_room_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "MOST_CONNECTIONS", 2)

    async def scenario() -> None:
        async with serving() as web:
            first_reader, first = await web.connect()
            second_reader, second = await web.connect()
            for reader, writer in ((first_reader, first), (second_reader, second), (first_reader, first)):
                writer.write(get())
                assert (await answer(reader))[0] == 200
            third_reader, third = await web.connect()
            third.write(get())
            assert (await answer(third_reader))[0] == 200
            assert await ends(second_reader)
            first.write(get())
            assert (await answer(first_reader))[0] == 200

    run(scenario)


def test_one_connection_too_many_is_closed_where_all_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "MOST_CONNECTIONS", 1)

    async def scenario() -> None:
        async with serving() as web:
            gate = web.before = Gate()
            reader, writer = await web.connect()
            writer.write(get())
            await gate.begun.wait()
            other_reader, other = await web.connect()
            other.write(get())
            assert await ends(other_reader)
            gate.may_go_on.set()
            assert (await answer(reader))[0] == 200
            writer.close()
            await web.ended.wait()
            third_reader, third = await web.connect()
            third.write(get())
            assert (await answer(third_reader))[0] == 200

    run(scenario)


def test_a_request_at_work_is_answered_when_the_server_stops_and_no_other_begins() -> None:
    async def scenario() -> None:
        async with serving() as web:
            gate = web.before = Gate()
            reader, writer = await web.connect()
            idle_reader, _ = await web.connect()
            writer.write(get("/first") + get("/second"))
            await gate.begun.wait()
            while len(web.served) < 2:
                await asyncio.sleep(0)
            for connection in web.served:
                connection.stop_taking_requests()
            for connection in list(web.served):
                connection.close()
            assert await idle_reader.read() == b""
            gate.may_go_on.set()
            assert await answer(reader) == (200, b"/first 0")
            assert await reader.read() == b""

    run(scenario)
