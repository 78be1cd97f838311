"""Attackers of a Kafka door: somebody who has not logged in, somebody who may do nothing, and somebody who may do all.

Each ends with the same questions: has anything failed, did a turn of the loop take long, is anything held that nobody
needs any more, is a neighbour served? What has not logged in, or has no rights, changes nothing that lasts, and hears
no name that it has not said itself. What comes before the login is one of the answers that Apache Kafka gives a
stranger.
"""

import struct
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ed25519

from exacta.front.identity import Identity
from exacta.kafka.login import Phase
from exacta.ports.authorizer import ANONYMOUS, Principal
from exacta.protocol.kafka.apis import API, ApiKey
from exacta.protocol.kafka.codec import DecodeError, decode_response, encode_request
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from exacta.protocol.sasl.scram import ALGORITHMS, ScramError
from exacta.protocol.sasl.scram_client import ScramClient
from exacta.security.authorizer import AclAuthorizer
from exacta.security.backoff import LoginBackoff
from exacta.security.bearer_login import bearer_login
from exacta.security.logins import MECHANISMS, Logins
from exacta.security.token_keys import Key
from exacta.security.tokens import TokenRules, Tokens
from tests.fuzz.attacking import HIDDEN, attack, check_fold, durable, jwt_of, keys_of
from tests.fuzz.changing import changed
from tests.fuzz.choices import Choices
from tests.fuzz.kafka_requests import REQUESTS, request
from tests.fuzz.watched import Watch
from tests.kafka.by_hand import Broker, Client
from tests.kafka.wire import batch

BEFORE_LOGIN = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
"""The APIs that Apache Kafka answers to somebody who has not logged in."""
CORRELATION_ID = 7
NONCE = "n" * 20


# --- the broker -------------------------------------------------------------------------------------------------------


class OneKey:
    """The key of an issuer of tokens, which nobody has the private part of."""

    def __init__(self) -> None:
        public = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key()
        entry = jwt.get_algorithm_by_name("EdDSA").to_jwk(public, as_dict=True)
        self._key = Key(jwt.PyJWK(entry, algorithm="EdDSA"), ("EdDSA",))

    def find(self, key_id: str | None) -> Key | None:
        return self._key if key_id in (None, "k") else None

    def should_renew(self, key_id: str | None) -> bool:
        return False


def _logins() -> Logins:
    rules = TokenRules(audiences=("exacta",), issuer="https://issuer.example")
    tokens = Tokens(rules, OneKey())  # type: ignore[arg-type]
    backoff = LoginBackoff(0.0, lambda: 0.0)
    return Logins(
        MECHANISMS, backoff, keys_of=keys_of, secret=b"s", wall_ms=lambda: 0, bearer=lambda: bearer_login(tokens)
    )


def _connect(broker: Broker, name: str) -> Client:
    """Return a connection of a principal, whom its certificate might have named."""
    client = Client(broker, True, identify=lambda transport: Identity(Principal(name=name)))
    broker.clients.append(client)
    return client


def _furnish(broker: Broker, root: Client) -> None:
    names = ("t", "u", f"{HIDDEN}-topic")
    broker.ask(root, MetadataRequest(topics=[MetadataRequestTopic(name=each) for each in names]), 12)
    for name in names:
        data = PartitionProduceData(index=0, records=batch(f"{HIDDEN}-value".encode()))
        broker.ask(root, ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=name, partition_data=[data])]), 11)
    for name in ("x", f"{HIDDEN}-id"):
        broker.ask(root, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)


# --- attackers --------------------------------------------------------------------------------------------------------


def before_login(data: bytes) -> None:
    """Attack a door that asks for a login, without knowing a password."""
    choices = Choices(data)
    broker = Broker(logins=_logins())
    with Watch(broker) as watch:
        strangers = attack(
            choices,
            broker,
            connect=lambda: Stranger(broker, choices),
            step=Stranger.step,
            another_in=20,
            lets_time_pass=False,
        )
        for each in strangers:
            login = each.client.connection.login
            assert login is not None
            assert login.phase is not Phase.OPEN, "it has logged in"
            assert each.client.connection.principal == ANONYMOUS
            check_answers(bytes(each.client.received), has_tokens=each.spoke_tokens)
        assert not broker.storage.groups, "something was written"
    neighbour = broker.connect()
    served = broker.ask(neighbour, ApiVersionsRequest(client_software_name="n", client_software_version="1"), 3)
    assert served.error_code == ErrorCode.NONE
    watch.check()


class Stranger:
    """Somebody who has not logged in, and tries: mostly in the order of the protocol, so that much is reached."""

    def __init__(self, broker: Broker, choices: Choices) -> None:
        self.client = broker.connect()
        self.spoke_tokens = False
        self._broker, self._choices = broker, choices
        self._speaks_tokens = self._has_begun = False
        self._mechanism = ""
        self._scram = ScramClient("sha256", "bob", "b", nonce="m")

    def is_closing(self) -> bool:
        """Return whether its connection ends."""
        return self.client.is_closing()

    def step(self) -> None:
        """Send something."""
        choices = self._choices
        match choices.below(16):
            case 0:
                self._send(ApiVersionsRequest(client_software_name="s", client_software_version="1"), choices.below(6))
            case 1:
                self.client.send_bytes(changed(choices, request(choices, CORRELATION_ID)))
            case 2:
                self.client.send_bytes(choices.bytes(choices.below(64)))
            case 3:
                self._handshake()
            case 4:
                self._say(self._token())
            case _ if self._has_begun:
                self._say(self._token())
            case _:
                self._handshake()

    def _handshake(self) -> None:
        mechanism = self._choices.pick((*MECHANISMS * 5, "GSSAPI", "", "plain", "\0", "É" * 3000))
        version = self._choices.below(2)
        self._has_begun, self._mechanism = True, mechanism
        self._scram = ScramClient(ALGORITHMS.get(mechanism, "sha256"), "alice", "a guess", nonce=NONCE)
        self._send(SaslHandshakeRequest(mechanism=mechanism), version)
        if version == 0:
            self._speaks_tokens = self.spoke_tokens = True

    def _say(self, token: bytes) -> None:
        if self._speaks_tokens and not self._choices.once_in(8):
            frame = struct.pack(">i", len(token)) + token
            self.client.send_bytes(changed(self._choices, frame) if self._choices.once_in(4) else frame)
        else:
            self._send(SaslAuthenticateRequest(auth_bytes=token), self._choices.below(3))

    def _token(self) -> bytes:
        choices = self._choices
        match (self._mechanism, choices.below(8)):
            case ("PLAIN", 0 | 1 | 2 | 3):
                parts = (choices.pick(("", "alice", "bob", "a\nb", "alice")) for _ in range(2))
                return "\0".join((*parts, choices.pick(("secret", "", "x" * 5_000)))).encode()
            case ("OAUTHBEARER", 0 | 1 | 2 | 3 | 4):
                return choices.pick((b"n,,", b"n,a=alice,")) + b"\x01auth=Bearer " + jwt_of(choices) + b"\x01\x01"
            case ("OAUTHBEARER", 5):
                return b"\x01"
            case ("SCRAM-SHA-256" | "SCRAM-SHA-512", 0 | 1 | 2):
                return self._scram.first()
            case ("SCRAM-SHA-256" | "SCRAM-SHA-512", 3 | 4 | 5):
                return self._final()
            case (_, 6):
                return choices.pick((b"\x01", b"", choices.bytes(40), b"," * 60_000, b"n,," * 20_000, b"=" * 30_000))
            case _:
                return changed(choices, b"size" + self._scram.first())[4:]

    def _final(self) -> bytes:
        """Answer the challenge that has come, or one that has not."""
        self._broker.settle()
        received = bytes(self.client.received)
        begins = received.rfind(f"r={NONCE}".encode())
        challenge = b"r=nnonce,s=QSXCR+Q6sek8bf92,i=4096"
        if begins >= 0:
            challenge = received[begins:].split(b"\0")[0]
        try:
            final = self._scram.final(challenge)
        except ScramError:
            final = b"c=biws,r=nonce,p=AAAA"
        return changed(self._choices, b"size" + final)[4:] if self._choices.once_in(2) else final

    def _send(self, message: Any, version: int) -> None:
        version = min(version, max(API[message.SCHEMA.key].request.SCHEMA.versions))
        frame = b"".join(encode_request(message, version, CORRELATION_ID, "c"))
        self.client.send_bytes(changed(self._choices, frame) if self._choices.once_in(6) else frame)


def check_answers(received: bytes, *, has_tokens: bool) -> None:
    """Raise AssertionError where an answer is none that a stranger may get. Answers after SaslHandshake v0 are bare."""
    assert HIDDEN.encode() not in received
    position = 0
    while position < len(received):
        (size,) = struct.unpack_from(">i", received, position)
        frame = received[position + 4 : position + 4 + size]
        assert len(frame) == size, "half an answer"
        position += 4 + size
        if has_tokens and (not frame or frame.startswith((b"r=", b'{"status"'))):
            continue
        assert any(_is_answer(frame, key) for key in BEFORE_LOGIN), frame


def _is_answer(frame: bytes, key: ApiKey) -> bool:
    for version in API[key].response.SCHEMA.versions:
        try:
            decode_response(API[key].response, version, frame)
        except DecodeError:
            continue
        return True
    return False


def without_rights(data: bytes) -> None:
    """Attack as somebody who has logged in, and for whom there is no access rule."""
    _logged_in(data, "mallory", may_all=False)


def with_rights(data: bytes) -> None:
    """Attack as a super user: the worst that a request can do."""
    _logged_in(data, "root", may_all=True)


def _logged_in(data: bytes, name: str, *, may_all: bool) -> None:
    choices = Choices(data)
    broker = Broker(log_segment_bytes=1 << 20)
    broker.context.authorizer = AclAuthorizer(broker.engine.advice, frozenset({"User:root"}), allow_everyone=False)
    root = _connect(broker, "root")
    _furnish(broker, root)
    written = durable(broker.storage)
    with Watch(broker) as watch:

        def step(client: Client) -> None:
            frame = request(choices, CORRELATION_ID, REQUESTS)
            client.send_bytes(changed(choices, frame) if choices.once_in(2) else frame)

        clients = attack(choices, broker, lambda: _connect(broker, name), step)
        if not may_all:
            assert durable(broker.storage) == written, "something was written"
            assert all(HIDDEN.encode() not in each.received for each in clients)
        neighbour = _connect(broker, "root")
        answer = broker.ask(neighbour, MetadataRequest(topics=[]), 12)
        assert answer.cluster_id == "c"
        check_fold(broker.engine, broker.storage)
    watch.check()
