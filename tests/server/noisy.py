"""A server with every kind of login, and clients that log in rightly and wrongly, and then ask for everything."""

import itertools
import json
import signal
import ssl
import sys
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import jwt
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import pkcs12

from exacta.config.pulsar_logins import METHODS, TOKEN
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import API, ApiKey
from exacta.protocol.kafka.codec import decode_response, encode_request
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from exacta.protocol.kafka.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from exacta.protocol.sasl.scram import ALGORITHMS, ScramError, salted_password
from exacta.protocol.sasl.scram_client import ScramClient
from exacta.pulsar.rest.application import ROUTES
from tests import hidden
from tests.conformance.brokers import free_port
from tests.hidden import PASSWORDS, SALT, WRONG_PASSWORD
from tests.kafka.access_cases import CASES
from tests.kafka.access_requests import Names
from tests.kafka.wire import Wire
from tests.server.test_server import Process

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
BROKER = 4
NAMES = Names(topics=["t"], groups=["g"], transactional_ids=["x"])
ISSUER_KEY = b"hush7e3a" * 8


class Noisy:
    """A server with every kind of login, and the words of its clients."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.folder = folder
        self.answers: list[bytes] = []
        self._numbers = itertools.count(1)
        self.port, self.secure_port, self.web_port, self.pulsar_port = (free_port() for _ in range(4))
        self.authority = trustme.CA()
        self._write_stores()
        self.file = folder / "server.properties"
        self.file.write_text("\n".join(f"{key}={value}" for key, value in self._settings().items()))
        self.server = Process(
            self.data, "--config", str(self.file), "--log-level", "debug", "--web-listen", f"127.0.0.1:{self.web_port}",
            "--pulsar-tls-listen", f"127.0.0.1:{self.pulsar_port}", listen=None,
        )  # fmt: skip
        self.pid = self.server.process.pid
        self._ended: tuple[int, str] | None = None

    def end(self) -> tuple[int, str]:
        """End the server, once; return its exit code and its log. Another worker may have run the tests before."""
        if self._ended is None:
            self._ended = self.server.end(signal.SIGTERM)
        return self._ended

    def _write_stores(self) -> None:
        issued = self.authority.issue_cert("localhost", "127.0.0.1")
        self.key: Any = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        certificate = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
        own = x509.load_pem_x509_certificate(self.authority.cert_pem.bytes())
        for name, password, content in (
            ("store.p12", hidden.KEYSTORE_PASSWORD, (b"k", self.key, certificate, [own])),
            ("trust.p12", hidden.TRUSTSTORE_PASSWORD, None),
        ):
            locked = serialization.BestAvailableEncryption(password.encode())
            trusted = [pkcs12.PKCS12Certificate(own, b"ca")]
            store = (
                pkcs12.serialize_java_truststore(trusted, locked)
                if content is None
                else pkcs12.serialize_key_and_certificates(*content, locked)  # type: ignore[arg-type]
            )
            (self.folder / name).write_bytes(store)
        locked = serialization.BestAvailableEncryption(hidden.KEY_PASSWORD.encode())
        private = self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
        (self.folder / "chain.pem").write_bytes(issued.cert_chain_pems[0].bytes())
        (self.folder / "key.pem").write_bytes(issued.private_key_pem.bytes())
        (self.folder / "store.pem").write_bytes(private + issued.cert_chain_pems[0].bytes())

    def _settings(self) -> dict[str, str]:
        (self.folder / "token.secret").write_bytes(hidden.TOKEN_SECRET)
        (self.folder / "keys.json").write_text(json.dumps({"keys": [_public_jwk()]}))
        return {
            "listeners": f"LOCAL://127.0.0.1:{self.port},SECURE://127.0.0.1:{self.secure_port},TEXTS://127.0.0.1:0",
            "listener.security.protocol.map": "LOCAL:PLAINTEXT,SECURE:SASL_SSL,TEXTS:SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": (self.folder / "keys.json").as_uri(),
            "sasl.oauthbearer.expected.issuer": "https://issuer.example",
            "sasl.oauthbearer.expected.audience": "exacta",
            "connection.failed.authentication.delay.ms": "0",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS;User:root",
            "listener.name.secure.ssl.keystore.location": str(self.folder / "store.p12"),
            "listener.name.secure.ssl.keystore.password": hidden.KEYSTORE_PASSWORD,
            "tlsCertificateFilePath": str(self.folder / "chain.pem"),
            "tlsKeyFilePath": str(self.folder / "key.pem"),
            "ssl.truststore.location": str(self.folder / "trust.p12"),
            "ssl.truststore.password": hidden.TRUSTSTORE_PASSWORD,
            "listener.name.texts.ssl.keystore.location": str(self.folder / "store.pem"),
            "listener.name.texts.ssl.keystore.type": "PEM",
            "listener.name.texts.ssl.key.password": hidden.KEY_PASSWORD,
            "authenticationEnabled": "true",
            "authenticationProviders": next(name for name, word in METHODS.items() if word == TOKEN),
            "tokenSecretKey": (self.folder / "token.secret").as_uri(),
        }

    def address(self, *, secure: bool) -> str:
        """Return the address of one of its doors."""
        return f"127.0.0.1:{self.secure_port if secure else self.port}"

    def client_properties(self, password: str) -> str:
        """Return the properties of a client that logs in as root."""
        trusted = self.authority.cert_pem.bytes().decode().strip().replace("\n", "\\n")
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        login = f'{module} required username="root" password="{password}";'
        return "\n".join(
            [
                "security.protocol=SASL_SSL",
                "sasl.mechanism=SCRAM-SHA-512",
                f"sasl.jaas.config={login}",
                "ssl.truststore.type=PEM",
                f"ssl.truststore.certificates={trusted}",
            ]
        )

    # --- what clients do ----------------------------------------------------------------------------------------------

    def make_noise(self) -> None:
        """Make users, log in by each way, with right and wrong secrets, and ask for everything."""
        local = self.server.connect()
        self._users(local)
        for mechanism in ALGORITHMS:
            for user, password in (*PASSWORDS.items(), ("alice", WRONG_PASSWORD), ("nobody", WRONG_PASSWORD)):
                self._scram(mechanism, user, password)
        for token in self._plain_tokens():
            self._say("PLAIN", token)
        for token in self.tokens():
            self._say("OAUTHBEARER", b"n,,\x01auth=Bearer " + token + b"\x01\x01", b"\x01")
            self._say("OAUTHBEARER", token)
        self._misplaced()
        self._ask_everything(local)
        self._browse()

    def tokens(self) -> list[bytes]:
        """Return tokens of many kinds, none of which is taken."""
        claims = {"sub": "alice", "iss": "https://issuer.example", "aud": "exacta", "exp": 4_000_000_000}
        made = [jwt.encode(claims, ISSUER_KEY, "HS256"), jwt.encode(claims, ISSUER_KEY, "HS256", headers={"kid": "k"})]
        marked = jwt.encode({**claims, "sub": hidden.MARK, "aud": hidden.MARK}, hidden.TOKEN_SECRET, "HS256")
        return [*(each.encode() for each in (*made, marked)), f"{hidden.MARK}.{hidden.MARK}.{hidden.MARK}".encode()]

    def _users(self, wire: Wire) -> None:
        for number, mechanism in MECHANISMS.items():
            for user, password in PASSWORDS.items():
                salted = salted_password(ALGORITHMS[mechanism], password, SALT, hidden.ITERATIONS)
                for iterations, code in ((hidden.ITERATIONS, 0), (1, None)):
                    upsertion = ScramCredentialUpsertion(
                        name=user, mechanism=number, iterations=iterations, salt=SALT, salted_password=salted
                    )
                    answer = self._ask(wire, AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
                    assert code is None or [each.error_code for each in answer.results] == [code]

    def _ask(self, wire: Wire, request: Any, version: int) -> Any:
        """Ask, and keep the bytes of the answer."""
        correlation_id = wire.send(request, version)
        frame = wire.receive_frame()
        self.answers.append(frame)
        found, answer = decode_response(API[request.SCHEMA.key].response, version, frame)
        assert found == correlation_id
        return answer

    def _connect(self) -> Wire:
        """Return a connection at the door that asks for a login."""
        wire = Wire(("127.0.0.1", self.secure_port), source=self._source())
        context = ssl.create_default_context(cadata=self.authority.cert_pem.bytes().decode())
        wire.socket = context.wrap_socket(wire.socket, server_hostname="localhost")
        return wire

    def _source(self) -> tuple[str, int] | None:
        """Return another address of this machine each time: one alone has to wait after twenty wrong logins."""
        return (f"127.0.1.{next(self._numbers)}", 0) if sys.platform == "linux" else None

    def _say(self, mechanism: str, *messages: bytes) -> None:
        wire = self._connect()
        with suppress(OSError):
            self._ask(wire, SaslHandshakeRequest(mechanism=mechanism), 1)
            for each in messages:
                self._ask(wire, SaslAuthenticateRequest(auth_bytes=each), 2)
        wire.socket.close()

    def _plain_tokens(self) -> list[bytes]:
        known = [f"\0{user}\0{password}".encode() for user, password in (*PASSWORDS.items(), ("alice", WRONG_PASSWORD))]
        return [*known, WRONG_PASSWORD.encode(), f"root\0alice\0{WRONG_PASSWORD}".encode(), b"\xff" + known[0]]

    def _scram(self, mechanism: str, user: str, password: str) -> None:
        wire = self._connect()
        client = ScramClient(ALGORITHMS[mechanism], user, password)
        with suppress(OSError, ScramError):
            self._ask(wire, SaslHandshakeRequest(mechanism=mechanism), 1)
            challenge = self._ask(wire, SaslAuthenticateRequest(auth_bytes=client.first()), 2)
            self._ask(wire, SaslAuthenticateRequest(auth_bytes=client.final(bytes(challenge.auth_bytes))), 2)
        wire.socket.close()

    def _misplaced(self) -> None:
        """Send secrets where none belongs: in broken frames, at the wrong time."""
        password = WRONG_PASSWORD.encode()
        frame = b"".join(encode_request(SaslAuthenticateRequest(auth_bytes=password), 2, 1, "c"))
        for sent in (frame, frame[:-3] + b"\xff\xff\xff", password * 3, frame[:12] + password, b"GET /?p=" + password):
            wire = self._connect()
            wire.socket.sendall(sent)
            wire.socket.close()

    def _ask_everything(self, wire: Wire) -> None:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        self._ask(wire, CreateTopicsRequest(topics=[topic]), 7)
        resource = DescribeConfigsResource(resource_type=BROKER, resource_name="0")
        every = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
        self._ask(wire, every, 4)
        for name in ("tokenSecretKey", "ssl.key.password", "ssl.keystore.key"):
            config = AlterableConfig(name=name, config_operation=0, value=WRONG_PASSWORD)
            changed = AlterConfigsResource(resource_type=BROKER, resource_name="0", configs=[config])
            answer = self._ask(wire, IncrementalAlterConfigsRequest(resources=[changed]), 1)
            assert answer.responses[0].error_code
        for key in sorted(CASES.keys() - {ApiKey.SASL_AUTHENTICATE, ApiKey.SASL_HANDSHAKE}):
            version = HANDLERS[key].versions[1]
            one = self.server.connect()
            with suppress(OSError):
                self._ask(one, CASES[key].build(version, NAMES), version)

    def _browse(self) -> None:
        paths = [each.path for each in ROUTES if each.method == "GET"]
        for path in (*paths, "/metrics", "/health/live", "/health/ready", "/nowhere"):
            for part in ("tenant", "namespace", "topic", "domain", "cluster", "most", "least"):
                path = path.replace(f"{{{part}}}", {"domain": "persistent", "topic": "t"}.get(part, "public"))
            connection = HTTPConnection("127.0.0.1", self.web_port, timeout=20, source_address=self._source())
            with closing(connection):
                connection.request("GET", path, headers={"Authorization": f"Bearer {self.tokens()[2].decode()}"})
                answer = connection.getresponse()
                self.answers += [answer.read(), str(answer.headers).encode()]


def _public_jwk() -> dict[str, Any]:
    entry = jwt.get_algorithm_by_name("EdDSA").to_jwk(ed25519.Ed25519PrivateKey.generate().public_key(), as_dict=True)
    return {**entry, "kid": "k"}
