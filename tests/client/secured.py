"""A scripted broker with TLS and SASL, and where the real one is: what the contract tests of a secured client run on.

The scripted one knows just the requests of these tests. It follows Apache Kafka where that matters to a client: before
the login it takes ApiVersions and the login only and hangs up on anything else, a session ends, and what makes no sense
is answered by hanging up. `EXACTA_TEST_SECURE` names the folder of a real one (`python -m benchmarks.kafka --secure`);
the same tests then run there as well, so that this one stays honest.
"""

import base64
import contextlib
import json
import os
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from exacta.client.routing import Client
from exacta.client.security import Cluster, KeyStore, Sasl, Security, Tls, TrustStore
from exacta.protocol.kafka import codec
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from exacta.protocol.kafka.messages.k10_find_coordinator import FindCoordinatorResponse
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeResponse
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersion, ApiVersionsResponse
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateResponse
from exacta.protocol.sasl.scram import ALGORITHMS, ScramError, keys_from_salted, salted_password
from exacta.protocol.sasl.scram_server import ScramServer

REAL = os.environ.get("EXACTA_TEST_SECURE")
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
OFFERED = {3: (0, 9), 10: (0, 3), 17: (0, 1), 18: (0, 3), 36: (0, 2)}


class Access(Struct, frozen=True, kw_only=True):
    """The means to connect to a secured cluster: addresses by protocol, passwords by user, files of certificates."""

    listeners: dict[str, str]
    accounts: dict[str, str]
    ca: str
    client: str

    @classmethod
    def of(cls, folder: Path) -> "Access":
        """Read what a real one has left in its folder."""
        return cls(**json.loads((folder / "access.json").read_text()))

    def tls(self, *, identified: bool = False, **more) -> Tls:
        """Return TLS that trusts this cluster."""
        keystore = KeyStore(location=self.client) if identified else None
        return Tls(truststore=TrustStore(location=self.ca), keystore=keystore, **more)

    def security(self, protocol: str, mechanism: str = "SCRAM-SHA-256", user: str = "exacta") -> Security:
        """Return what is right for a protocol."""
        sasl = Sasl(mechanism=mechanism, username=user, password=self.accounts[user])
        return Security(
            tls=self.tls(identified=protocol == "SSL") if protocol.endswith("SSL") else None,
            sasl=sasl if protocol.startswith("SASL") else None,
        )


class Script(Struct):
    """The script of a scripted broker, and the requests that the broker has seen."""

    accounts: dict[str, str] = {}
    iterations: int = 4096
    session_lifetime_ms: int = 0
    forged_signature: bool = False
    mechanisms: list[str] = msgspec.field(default_factory=lambda: list(MECHANISMS))
    hang_ups: int = 0  # how many requests are met so
    answers_handshakes_anywhere: bool = False
    silent: bool = False  # what is asked once logged in is not answered
    clock: Callable[[], float] = time.monotonic  # it ends sessions
    connections: int = 0
    logins: int = 0


class ScriptedBroker:
    """One listener of the scripted broker; a context in which it listens."""

    def __init__(self, script: Script, *, context: ssl.SSLContext | None = None, login: bool = False) -> None:
        self.script = script
        self._context = context
        self._login = login
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._threads: list[threading.Thread] = []
        self._streams: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept)

    def __enter__(self):
        self._accepting.start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self):
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            self.script.connections += 1
            stream.settimeout(10)
            self._streams.append(stream)
            thread = threading.Thread(target=self._serve, args=(stream,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, stream):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, codec.DecodeError):
            stack.enter_context(stream)
            if self._context is not None:
                stream = stack.enter_context(self._context.wrap_socket(stream, server_side=True))
                self._streams.append(stream)
            session = _Session(self.script, self._login, self.port)
            while (frame := _frame(stream)) is not None:
                header, start = codec.decode_request_header(memoryview(frame))
                if self.script.silent and header.api_key not in (17, 18, 36):
                    continue
                response = session.answer(header, frame, start)
                if response is None:
                    return
                stream.sendall(b"".join(codec.encode_response(response, header.api_version, header.correlation_id)))


class _Session:
    """The state of one connection."""

    def __init__(self, script, login, port):
        self._script = script
        self._login = login
        self._port = port
        self._user = None if login else "ANONYMOUS"
        self._ends_s = None
        self._mechanism = None
        self._scram = None

    def answer(self, header, frame, start):
        """Return the response to a request; None hangs up."""
        if header.api_key not in OFFERED:
            return None
        request = codec.decode_request(frame, header, start)
        match header.api_key:
            case 18:
                return ApiVersionsResponse(
                    api_keys=[ApiVersion(api_key=key, min_version=a, max_version=b) for key, (a, b) in OFFERED.items()]
                )
            case 17:
                return self._handshake(request)
            case 36:
                return self._authenticate(request)
        if self._script.hang_ups:
            self._script.hang_ups -= 1
            return None
        if self._user is None or (self._ends_s is not None and self._script.clock() > self._ends_s):
            return None
        if header.api_key == 3:
            assert isinstance(request, MetadataRequest)
            return MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self._port)],
                controller_id=1,
                topics=[
                    MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=topic.name)
                    for topic in request.topics or ()
                ],
            )
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if self._user == "stranger" else ErrorCode.NONE
        return FindCoordinatorResponse(error_code=code, node_id=1, host="127.0.0.1", port=self._port)

    def _handshake(self, request):
        if not self._login and not self._script.answers_handshakes_anywhere:
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        if request.mechanism not in self._script.mechanisms:
            return SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=self._script.mechanisms
            )
        self._mechanism, self._scram = request.mechanism, None
        return SaslHandshakeResponse(mechanisms=self._script.mechanisms)

    def _authenticate(self, request):
        if self._mechanism is None:
            return None
        token = bytes(request.auth_bytes)
        if self._mechanism == "PLAIN":
            _, user, password = token.decode().split("\0")
            if self._script.accounts.get(user) != password:
                return self._refuse("Authentication failed: Invalid username or password")
            return self._welcome(user, b"")
        if self._scram is None:
            algorithm = ALGORITHMS[self._mechanism]
            self._scram = ScramServer(algorithm, partial(self._keys, algorithm))
            return SaslAuthenticateResponse(auth_bytes=self._scram.first(token))
        try:
            final = self._scram.final(token)
        except ScramError:
            return self._refuse(
                "Authentication failed during authentication due to invalid credentials with SASL SCRAM"
            )
        if self._script.forged_signature:
            final = b"v=" + base64.b64encode(b"another signature")
        return self._welcome(self._scram.user, final)

    def _keys(self, algorithm, user):
        password, salt = self._script.accounts.get(user, secrets.token_hex()), secrets.token_bytes(16)
        salted = salted_password(algorithm, password, salt, self._script.iterations)
        return keys_from_salted(algorithm, salted, salt, self._script.iterations)

    def _welcome(self, user, token):
        self._script.logins += 1
        lifetime_ms = self._script.session_lifetime_ms
        self._ends_s = self._script.clock() + lifetime_ms / 1000 if lifetime_ms else None
        self._user, self._mechanism = user, None
        return SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms)

    @staticmethod
    def _refuse(message):
        return SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message)


def server_context(folder: Path, *, client_certificate: bool = False) -> ssl.SSLContext:
    """Return the server's side of TLS with the certificates in `folder`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    if client_certificate:
        context.load_verify_locations(folder / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@contextlib.contextmanager
def scripted(folder: Path, script: Script):
    """Run a scripted broker with a listener for each protocol and yield how to connect to it."""
    with contextlib.ExitStack() as stack:
        listeners = {
            "PLAINTEXT": ScriptedBroker(script),
            "SSL": ScriptedBroker(script, context=server_context(folder, client_certificate=True)),
            "SASL_PLAINTEXT": ScriptedBroker(script, login=True),
            "SASL_SSL": ScriptedBroker(script, context=server_context(folder), login=True),
        }
        for listener in listeners.values():
            stack.enter_context(listener)
        yield Access(
            listeners={name: listener.address for name, listener in listeners.items()},
            accounts=script.accounts,
            ca=str(folder / "ca.pem"),
            client=str(folder / "client.pem"),
        )


def _frame(stream):
    size = _exactly(stream, 4)
    if size is None:
        return None
    length = int.from_bytes(size, "big", signed=True)
    return _exactly(stream, length) if 0 <= length <= 10_000_000 else None


def _exactly(stream, count):
    found = b""
    while len(found) < count:
        part = stream.recv(count - len(found))
        if not part:
            return None
        found += part
    return found


def nodes_with(broker, tls):
    """Return the ids of the brokers, asked through TLS."""
    with Client(Cluster(bootstrap=broker.address, security=Security(tls=tls))) as client:
        return client.nodes()
