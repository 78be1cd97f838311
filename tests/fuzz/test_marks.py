"""Code that reads bytes of clients who have not logged in is marked, and only that: nobody adds to it unseen.

The docstring of a module has the sentence `MARK` if its code reads such bytes. Attackers attack the doors, and each
call of ours with bytes, a request or a client's text is noted. The modules that were called so are those with the mark.
"""

import ast
import random
import sys
from functools import cache
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from google.protobuf.message import Message as Command

import exacta
from exacta.config.options import configure
from exacta.protocol.kafka.schema import Message
from exacta.security.tls import tls_settings
from exacta.server.tls import Certificate
from tests.fuzz.http_target import Web
from tests.fuzz.pulsar_target import logins
from tests.fuzz.targets import TARGETS
from tests.fuzz.watched import Watch
from tests.pulsar.by_hand import Broker
from tests.server.test_tls import Files

MARK = "It reads bytes before a login."
SOURCE = Path(exacta.__file__).parent
TEXTS_OF_CLIENTS = ("exacta.security.", "exacta.protocol.sasl.", "exacta.kafka.handlers.")
"""Rooms in which a text that is handed over is a client's."""
HANDS_ON = {
    "exacta.front.turns": "it hands the outcome of a thread's work to those who wait for it",
    "exacta.front.conversions": "the same",
    "exacta.security.exchange": "it holds the reason of a refusal",
    "exacta.security.backoff": "it counts addresses",
    "exacta.kafka.context": "it hands answers on",
    "exacta.kafka.serving": "it hands requests on, or refuses them by their API",
    "exacta.pulsar.needs": "CONNECT needs no right",
    "exacta.pulsar.context": "it hands commands and answers on",
}
"""Modules that get bytes and do not look at them."""


class Calls:
    """Notes the modules of ours that are called with something of a client's."""

    def __init__(self) -> None:
        self.modules: dict[str, set[str]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """See `sys.setprofile`."""
        module = frame.f_globals.get("__name__") or ""
        if event != "call" or not module.startswith("exacta."):
            return
        code = frame.f_code
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            if is_of_client(frame.f_locals.get(name), module):
                self.modules.setdefault(module, set()).add(code.co_qualname)


def is_of_client(value: Any, module: str) -> bool:
    """Return whether an argument is something that came from a client, as bytes or as what was read of them."""
    if isinstance(value, bytes | bytearray | memoryview):
        return True
    if isinstance(value, Message):
        return type(value).__name__.endswith("Request")
    if isinstance(value, Command):
        return True
    if isinstance(value, dict):
        return "raw_path" in value
    return isinstance(value, str) and module.startswith(TEXTS_OF_CLIENTS)


def by_fuzzing(name: str) -> None:
    """Attack with some strings of bytes, the same each time."""
    for seed in range(80):
        TARGETS[name].attack(random.Random(seed).randbytes(400))


def by_http(calls: Calls) -> None:
    """Ask for what is served without a login, and for what is not there."""
    web = Web(Broker(), logins())
    shown = b"Authorization: Basic YWxpY2U6Z3Vlc3M=\r\n"
    for line in (b"GET /health/live", b"GET /health/ready", b"GET /nowhere", b"PUT /admin/v2/nowhere"):
        transport = web.connect()
        sys.setprofile(calls)
        web.send(transport, line + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        web.send(transport, line + b" HTTP/1.1\r\nHost: localhost\r\n" + shown + b"\r\n")
        web.send(transport, b"\x16\x03\x01\0")
        sys.setprofile(None)
    web.close()


def by_certificate(calls: Calls, folder: Path) -> None:
    """Show a certificate, which is read when the handshake is done: before that only OpenSSL reads bytes."""
    files = Files(folder)
    options = {"ssl.keystore.location": files.keystore, "ssl.truststore.location": files.trusted}
    certificate = Certificate(tls_settings(configure({**options, "ssl.client.auth": "required"}), "kafka"))
    shown = x509.load_pem_x509_certificate(files.issued.cert_chain_pems[0].bytes()).public_bytes(Encoding.DER)
    ends = {"notAfter": "Jan  1 00:00:00 2040 GMT"}
    connection = SimpleNamespace(getpeercert=lambda binary_form=False: shown if binary_form else ends)
    sys.setprofile(calls)
    certificate.identify(SimpleNamespace(get_extra_info=lambda name: connection))  # type: ignore[arg-type]
    sys.setprofile(None)


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The modules of ours that were called with bytes before a login, and the functions."""
    calls = Calls()
    Watch.tracer, Watch.slower = calls, 10.0
    for name in ("kafka-before-login", "pulsar-before-login"):
        by_fuzzing(name)
    Watch.tracer, Watch.slower = None, 1.0
    by_http(calls)
    by_certificate(calls, tmp_path_factory.mktemp("tls"))
    return calls.modules


@cache
def marked() -> set[str]:
    """Return the modules whose docstring has the mark."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        if MARK in " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split()):
            parts = path.relative_to(SOURCE).with_suffix("").parts
            found.add(".".join(("exacta", *(each for each in parts if each != "__init__"))))
    return found


def test_what_reads_bytes_before_a_login_is_marked(called: dict[str, set[str]]) -> None:
    unmarked = {module: names for module, names in called.items() if module not in marked() | HANDS_ON.keys()}
    assert unmarked == {}, f'say in the docstring of each module: "{MARK}"'


def test_what_is_marked_is_reached(called: dict[str, set[str]]) -> None:
    assert marked() - called.keys() == set(), "the mark is no longer true, or no attacker gets there"
