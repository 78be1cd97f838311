"""Tricks of headers and paths at a door that asks for a login: none gets at more than live and ready."""

import logging
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

import exacta
from exacta.core.commands import AlterScramKeys
from tests.web.test_login import ALICE, OPTIONS, basic, do, key

LIVE = b'{"status":"live"}'


@pytest.fixture(scope="module")
def broker() -> Iterator[exacta.Broker]:
    without_tls = {name: value for name, value in OPTIONS.items() if not name.startswith("ssl.")}
    with exacta.Broker(pulsar=True, config=without_tls) as started:
        do(started, AlterScramKeys(alterations=(key(ALICE, "pencil"),)))
        yield started


def sent(broker: exacta.Broker, data: bytes) -> bytes:
    """Send bytes, and nothing more; return all that is answered."""
    with socket.create_connection((urlsplit(broker.web_url).hostname, urlsplit(broker.web_url).port), 30) as client:
        client.sendall(data)
        found = b""
        try:
            while piece := client.recv(65_536):
                found += piece
        except ConnectionResetError:  # what is not read any more
            pass
    return found


def answers(found: bytes) -> list[tuple[int, bytes]]:
    """Return the status and the body of each answer."""
    parsed = []
    while found:
        head, _, rest = found.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        [size] = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")] or [len(rest)]
        parsed.append((int(lines[0].split()[1]), rest[:size]))
        found = rest[size:]
    return parsed


def get(target: str, *headers: str, host: str = "localhost") -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", *headers, "Connection: close", "", ""]).encode()


TARGETS = [
    "/%6detrics",
    "/metrics%2f",
    "/metrics%00",
    "//metrics",
    "/./metrics",
    "/METRICS",
    "/metrics.",
    "/metrics/",
    "/metrics;/health/live",
    "/metrics?/health/live",
    "/metrics%3F/health/live",
    "/metrics#/health/live",
    "/health/live#/metrics",
    "/health/live/../../metrics",
    "/health/live/..%2f..%2fmetrics",
    "/health/live/%2e%2e/%2e%2e/metrics",
    "/health/live%2f..%2f..%2fmetrics",
    "/health/live/",
    "/health/live.",
    "/health/live%20",
    "/health/live%00",
    "/health//live",
    "/Health/live",
    "//health/live",
    "//localhost/health/live",
    "http://localhost/metrics",
    "http://localhost/health/live",
    "http://user@localhost/metrics",
    "*",
    "health/live",
    "/admin/v2/persistent/public/default%2Ft/partitions",
]


@pytest.mark.parametrize("target", TARGETS)
def test_a_path_that_is_not_live_or_ready_letter_by_letter_needs_a_login(broker: exacta.Broker, target: str) -> None:
    [(status, body)] = answers(sent(broker, get(target)))
    assert status in (400, 401)
    assert b"exacta_" not in body


@pytest.mark.parametrize("target", ["/health%2Flive", "/%68ealth/live", "/health/live?x=/metrics"])
def test_another_spelling_of_live_is_live(broker: exacta.Broker, target: str) -> None:
    assert answers(sent(broker, get(target))) == [(200, LIVE)]


HEADERS = [
    "X-Original-URL: /metrics",
    "X-Rewrite-URL: /metrics",
    "X-Forwarded-Prefix: /metrics/..",
    "X-Forwarded-For: 10.0.0.1",
    "X-Forwarded-Host: evil.example",
    "X-Forwarded-Proto: https",
    "X-Real-IP: 10.0.0.1",
    "Forwarded: for=10.0.0.1;host=evil.example",
    "X-HTTP-Method-Override: DELETE",
    "X-Forwarded-User: alice",
    "X-Remote-User: alice",
    "X-Forwarded-Client-Cert: Subject=CN=alice",
    "Proxy-Authorization: " + basic(ALICE, "pencil"),
    "Cookie: Authorization=" + basic(ALICE, "pencil"),
    "Authorization : " + basic(ALICE, "pencil"),
    "X-Authorization: " + basic(ALICE, "pencil"),
]


@pytest.mark.parametrize("header", HEADERS)
def test_no_other_header_says_who_asks_or_for_what(broker: exacta.Broker, header: str) -> None:
    [(status, _)] = answers(sent(broker, get("/metrics", header)))
    assert status == (400 if " :" in header else 401)
    [answer] = answers(sent(broker, get("/health/live", header)))
    assert answer[0] == 400 if " :" in header else answer == (200, LIVE)


def test_a_refusal_is_told_with_the_address_that_the_connection_has(
    broker: exacta.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "exacta.audit"):
        sent(broker, get("/metrics", "Authorization: " + basic(ALICE, "guess"), "X-Forwarded-For: 10.0.0.1"))
    [line] = [each.getMessage() for each in caplog.records if each.name == "exacta.audit"]
    assert "from 127.0.0.1:" in line
    assert "10.0.0.1" not in line


GOOD = "Authorization: " + basic(ALICE, "pencil")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/metrics", GOOD, GOOD), 400),
        (get("/metrics", "authorization: " + basic(ALICE, "guess"), GOOD), 400),
        (get("/metrics", "Host: localhost", GOOD), 400),
        (get("/metrics", GOOD, host="evil.example"), 403),
        (get("/metrics", GOOD, "Origin: https://evil.example"), 403),
        (get("/metrics", GOOD + "\r\n folded"), 401),
        (get("/metrics", "Authorization: Basic " + "QUFB" * 3_000), 401),
        (get("/metrics", *(f"X-{number}: x" for number in range(5_000))), 431),
        (get("/metrics", "X: " + "x" * 200_000), 400),
        (get("/metrics", "X: a\x00b"), 400),
        (get("/metrics", "X\t: a"), 400),
        (b"GET /metrics\r\n\r\n", 400),
    ],
)
def test_what_is_doubled_foreign_or_too_much_is_refused(broker: exacta.Broker, request_: bytes, status: int) -> None:
    [(found, _)] = answers(sent(broker, request_))
    assert found == status


@pytest.mark.parametrize(
    "lengths",
    [
        ("Content-Length: 4", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 4"),
        ("Content-Length: 0", "Transfer-Encoding: chunked"),
        ("Content-Length: 4", "Content-Length: 5"),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked, chunked",),
        ("Content-Length: +4",),
        ("Content-Length: 4_0",),
    ],
)
def test_a_body_of_two_lengths_is_none_and_hides_no_request(broker: exacta.Broker, lengths: tuple[str, ...]) -> None:
    hidden = b"0\r\n\r\n" + get("/metrics", GOOD)
    head = "\r\n".join(["POST /health/live HTTP/1.1", "Host: localhost", *lengths, "", ""]).encode()
    found = answers(sent(broker, head + hidden))
    assert [status for status, _ in found] in ([400], [501])
