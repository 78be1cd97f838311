"""The guard of the web front: tables of what requests say of themselves."""

import asyncio
from typing import Any

import pytest

from exacta.web.guard import MOST_HEADER_BYTES, Guard, host_in
from tests.docstring_tables import docstring_table

LOCAL = "127.0.0.1"


class Server:
    """A request as the guard sees it."""

    is_stopping = False


def status_of(headers: dict[str, str], *, local_host: str = LOCAL, scheme: str = "http", stopping: bool = False) -> int:
    """Ask with these headers; 200 is the answer of the application behind the guard."""
    server = Server()
    server.is_stopping = stopping
    statuses: list[int] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
            assert {b"date", b"cache-control", b"x-content-type-options"} <= {name for name, _ in message["headers"]}

    scope = {
        "type": "http",
        "scheme": scheme,
        "server": (local_host, 8080),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(Guard(server, application, ["Broker.Example"])(scope, None, send))  # type: ignore[arg-type]
    [status] = statuses
    return status


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "127.8.9.1", "[::1]:8080", "broker.example:8080"],
)
def test_names_of_this_server(host: str) -> None:
    assert status_of({"Host": host}) == 200


TWO_LENGTHS = "`Content-Length` beside `Transfer-Encoding`"
LONG = "more than 16 KiB of headers"
HOST = "no `Host`, or another one than this server's"
ORIGIN = "an `Origin` that is not this server itself"
SITE = "`Sec-Fetch-Site` that is not `same-origin` or `none`"
REFUSED = {
    row: int(cell)
    for row, cell in docstring_table("exacta.web.guard", "what a request says").column("is answered").items()
}
OTHER_HOSTS = [
    "evil.example",
    "evil.example:8080",
    "localhost.evil.example",
    "localhost@evil.example",
    "localhost/evil.example",
    "10.0.0.7:8080",
    "0.0.0.0",
    "localhost:x",
    "[::1",
    "",
]


def test_the_table_is_complete() -> None:
    assert REFUSED.keys() == {TWO_LENGTHS, LONG, HOST, ORIGIN, SITE}


def test_a_body_of_two_lengths_and_long_headers_are_refused_before_all_else() -> None:
    assert status_of({"Content-Length": "4", "Transfer-Encoding": "chunked"}) == REFUSED[TWO_LENGTHS]
    assert status_of({"Host": "localhost", "X": "x" * MOST_HEADER_BYTES}) == REFUSED[LONG]
    assert status_of({"Host": "localhost", "X": "x" * (MOST_HEADER_BYTES - 100)}) == 200


@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_other_names_are_refused(host: str) -> None:
    assert status_of({"Host": host}) == REFUSED[HOST]


def test_the_address_that_was_connected_to_is_a_name() -> None:
    assert status_of({"Host": "10.0.0.7:8080"}, local_host="10.0.0.7") == 200


def test_a_request_without_a_host_is_refused() -> None:
    assert status_of({}) == REFUSED[HOST]


@pytest.mark.parametrize(
    ("origin", "scheme", "status"),
    [
        ("http://localhost:8080", "http", 200),
        ("https://localhost:8080", "https", 200),
        ("https://localhost:8080", "http", REFUSED[ORIGIN]),
        ("http://localhost:3000", "http", REFUSED[ORIGIN]),
        ("http://evil.example", "http", REFUSED[ORIGIN]),
        ("null", "http", REFUSED[ORIGIN]),
    ],
)
def test_pages_of_other_origins_are_refused(origin: str, scheme: str, status: int) -> None:
    assert status_of({"Host": "localhost:8080", "Origin": origin}, scheme=scheme) == status


@pytest.mark.parametrize(
    ("site", "status"),
    [("none", 200), ("same-origin", 200), ("same-site", REFUSED[SITE]), ("cross-site", REFUSED[SITE])],
)
def test_pages_of_other_sites_are_refused_also_if_they_send_no_origin(site: str, status: int) -> None:
    assert status_of({"Host": "localhost", "Sec-Fetch-Site": site}) == status


def test_a_server_that_stops_answers_so() -> None:
    assert status_of({"Host": "localhost"}, stopping=True) == 503
    assert status_of({"Host": "evil.example"}, stopping=True) == 403


@pytest.mark.parametrize(
    ("header", "host"), [("a.b:1", "a.b"), ("[::1]:1", "::1"), ("A", "a"), ("a?b", None), ("u:p@a", None), (":1", None)]
)
def test_the_host_in_a_header(header: str, host: str | None) -> None:
    assert host_in(header) == host
