"""The login of Pulsar clients: who shows what is let in, nothing else is read before, and a token's end is its own."""

import logging
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from exacta.config.options import configure
from exacta.front.arrivals import LOGIN_SECONDS
from exacta.front.identity import Identity
from exacta.ports.authorizer import ANONYMOUS, Principal
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import NO_REQUEST
from exacta.protocol.pulsar.frames import build_frame, parse_frame
from exacta.protocol.sasl.scram import ScramKeys, keys_from_salted, salted_password
from exacta.pulsar.login import rest_s
from exacta.security.backoff import LoginBackoff
from exacta.security.logins import Logins
from exacta.security.signed_tokens import SignedTokens, TokenKey
from tests.docstring_tables import docstring_table
from tests.pulsar.by_hand import Broker, Client

NOW_MS = 1_700_000_000_000
SECRET = bytes(range(64))
WORDS = "Failed to authenticate"
ALICE = Principal(name="alice")


def token(seconds: float | None = None, user: str = "alice") -> bytes:
    claims = {"sub": user} | ({} if seconds is None else {"exp": NOW_MS / 1000 + seconds})
    return jwt.encode(claims, SECRET, "HS256").encode()


def connect(method: str | None = None, data: bytes = b"", *, refreshes: bool = True, **more: Any) -> pb.CommandConnect:
    flags = pb.FeatureFlags(supports_auth_refresh=refreshes)
    found = pb.CommandConnect(client_version="by hand", protocol_version=20, feature_flags=flags, **more)
    if method is not None:
        found.auth_method_name, found.auth_data = method, data
    return found


def keys_of(user: str, mechanism: str) -> ScramKeys | None:
    """Return the keys of the one user, which take a moment."""
    salt = b"salt of alice"
    known = (user, mechanism) == ("alice", "SCRAM-SHA-256")
    return keys_from_salted("sha256", salted_password("sha256", "sec:ret", salt, 1), salt, 1) if known else None


class Served(Broker):
    """A broker whose clock is the one by which tokens end."""

    def __init__(self, methods: frozenset[str] = frozenset({"token", "basic", "tls"}), **options: Any) -> None:
        rules = configure({"pulsar.token.require.expiry": False})
        tokens = SignedTokens(rules, TokenKey(SECRET, ("HS256",)), self.wall_ms)
        logins = Logins(
            (),
            LoginBackoff(0.1, lambda: 0.0),
            keys_of=keys_of,
            secret=b"a secret",
            wall_ms=self.wall_ms,
            methods=methods,
            prove=tokens.log_in,
        )
        super().__init__(logins=logins, **options)
        self.begun_ms = self.loop.now_ms

    def wall_ms(self) -> int:
        return NOW_MS + int(self.loop.now_ms - self.begun_ms)


@pytest.fixture
def broker() -> Iterator[Served]:
    made = Served()
    yield made
    made.end()


@pytest.fixture(autouse=True)
def audited(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "exacta.audit")
    return caplog


def opened(broker: Broker, *sent: bytes) -> Client:
    """Return a client that has sent these bytes, and waits for nothing."""
    client = broker.connect(connects=False)
    client.send_bytes(b"".join(sent))
    broker.settle()
    return client


def is_served(broker: Broker, client: Client) -> bool:
    client.send(pb.CommandPing())
    broker.settle()
    return [type(each) for each in client.answers()] == [pb.CommandPong]


@pytest.mark.parametrize(
    ("method", "data", "certified"),
    [
        ("token", token(), ANONYMOUS),
        ("token", token(60), Principal(name="CN=somebody")),
        ("basic", b"alice:sec:ret", ANONYMOUS),
        ("tls", b"", ALICE),
        ("tls", b"none", ALICE),
    ],
)
def test_who_logs_in_is_served_as_this_user(
    broker: Served, method: str, data: bytes, certified: Principal, caplog: pytest.LogCaptureFixture
) -> None:
    client = broker.connect(connect=connect(method, data), identify=lambda _: Identity(certified))
    assert isinstance(client.connected, pb.CommandConnected)
    assert client.connection.principal == ALICE
    assert is_served(broker, client)
    assert f"User:alice logged in by {method} from 10.0.0.1:1 at the door PULSAR" in caplog.text


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (connect(), "the door offers basic, tls, token, and not none"),
        (connect("none"), "and not none"),
        (connect("athenz", b"x"), "and not athenz"),
        (connect("to\nken", token()), r"and not to\nken"),
        (pb.CommandConnect(client_version="old", auth_method=pb.AuthMethodYcaV1), "and not ycav1"),
        (connect("token"), "its token is refused: it is malformed"),
        (connect("token", token(0)), "it has expired"),
        (connect("token", token(60)[:-5] + b"AAAAA"), "its token is refused: it is not taken"),
        (connect("token", b"\xff"), "it sent something that is not text"),
        (connect("basic", b"alice:wrong"), "its password is wrong, or there is no such user"),
        (connect("basic", b"nobody:sec:ret"), "its password is wrong, or there is no such user"),
        (connect("basic", b"alice"), "it sent no name or no password"),
        (connect("basic", b":secret"), "it sent no name or no password"),
        (connect("basic", b"\xff:x"), "it sent something that is not text"),
        (connect("tls"), "it has shown no certificate"),
        (connect("token", token(), original_principal="admin"), "original_principal"),
        (connect("token", token(), original_auth_data="x"), "original_auth_data"),
        (connect("token", token(), original_auth_method="x"), "original_auth_method"),
        (connect("token", token(), proxy_to_broker_url="pulsar://h:6650"), "proxy_to_broker_url"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_refusal_tells_nothing_waits_and_ends_the_connection(
    broker: Served, command: pb.CommandConnect, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = opened(broker, build_frame(command), build_frame(pb.CommandPing()))
    broker.pass_time(100)
    [answer] = client.answers()
    assert (answer.request_id, answer.error, answer.message) == (NO_REQUEST, pb.ServerError.AuthenticationError, WORDS)
    assert client.closed
    [line] = [each for each in caplog.messages if "was refused" in each]
    assert reason in line
    assert "\n" not in line
    for secret in ("wrong", token(60).decode()[:-5]):
        assert secret not in line.replace("is wrong", "")


def test_refusals_wait_longer_and_longer(broker: Served) -> None:
    for waits_ms in (100, 200, 400):
        client = opened(broker, build_frame(connect("token")))
        broker.pass_time(waits_ms - 1)
        assert not client.answers()
        broker.pass_time(1)
        assert client.closed


def test_no_proxy_speaks_for_others_where_nobody_logs_in() -> None:
    broker = Broker()
    client = opened(broker, build_frame(connect(original_principal="admin")))
    assert client.closed
    broker.end()


def test_credentials_are_not_looked_at_where_nobody_logs_in() -> None:
    broker = Broker()
    client = broker.connect(connect=connect("token", b"\xff"))
    assert client.connection.principal == ANONYMOUS
    assert is_served(broker, client)
    broker.end()


def test_a_method_that_is_not_offered() -> None:
    broker = Served(frozenset({"tls"}))
    for method, data in (("token", token()), ("basic", b"alice:sec:ret")):
        client = opened(broker, build_frame(connect(method, data)))
        broker.pass_time(5_000)
        assert client.closed
    broker.end()


@pytest.mark.parametrize(
    "sent",
    [
        build_frame(pb.CommandPing()),
        build_frame(pb.CommandAuthResponse(response=pb.AuthData(auth_method_name="token", auth_data=token()))),
        build_frame(pb.CommandLookupTopic(topic="t", request_id=1)),
        b"\x00\x00\x00\x08\x00\x00\x00\x04\x08\x12junk"[:12],
        b"\x00\x00\x00\x04\x00\x00\x00\x00",
        b"\x00\x02\x00\x00",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_before_the_login_nothing_else_is_read(broker: Served, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exacta.pulsar.connection.parse_frame", lambda frame: pytest.fail("it was read"))
    assert opened(broker, sent).closed


def test_after_the_login_frames_may_be_long(broker: Served) -> None:
    client = broker.connect(connect=connect("token", token()))
    client.send(pb.CommandGetSchema(topic="x" * 100_000, request_id=1))
    broker.settle()
    assert not client.closed


def test_a_command_that_is_sent_ahead_is_served_after_the_login(broker: Served) -> None:
    """The password takes a thread's time, and the command waits for it."""
    client = opened(broker, build_frame(connect("basic", b"alice:sec:ret")), build_frame(pb.CommandPing()))
    assert [type(each) for each in client.answers()] == [pb.CommandConnected, pb.CommandPong]


SENT = {
    "CONNECT": connect("token", token(1_000)),
    "AUTH_RESPONSE": pb.CommandAuthResponse(response=pb.AuthData(auth_method_name="token", auth_data=token(1_000))),
    "any other": pb.CommandPing(),
}


@pytest.mark.parametrize(
    ("command", "phase", "expected"), docstring_table("exacta.pulsar.login", "command").cells(), ids=str
)
def test_each_command_in_each_phase(
    broker: Served, command: str, phase: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = broker.connect(**({"connects": False} if phase == "begun" else {"connect": connect("token", token(100))}))
    if phase == "asked":
        ping_away(broker, client, 50)
    client.answers()
    parsed: list[object] = []

    def parse(frame: Any) -> Any:
        parsed.append(frame)
        return parse_frame(frame)

    monkeypatch.setattr("exacta.pulsar.connection.parse_frame", parse)
    client.send(SENT[command])
    broker.settle()
    assert client.closed is (expected in ("end", "unread"))
    assert bool(parsed) is (expected != "unread")
    answers = {"served": [pb.CommandPong], "login": [pb.CommandConnected] if phase == "begun" else []}
    assert [type(each) for each in client.answers()] == answers.get(expected, [])


def test_a_client_that_says_nothing_is_closed_in_time(broker: Served, caplog: pytest.LogCaptureFixture) -> None:
    silent, slow = broker.connect(connects=False), broker.connect(connect=connect("token", token()))
    silent.send_bytes(build_frame(connect("token", token()))[:7])
    broker.pass_time(int(LOGIN_SECONDS * 1_000) - 1)
    assert silent.connection in broker.connections
    broker.pass_time(1)
    assert silent.closed
    assert "it has not logged in within 30 s" in caplog.text
    assert is_served(broker, slow)
    assert not broker.context.arrivals._coming


def test_connect_comes_once(broker: Served) -> None:
    client = broker.connect(connect=connect("token", token()))
    client.send(connect("token", token(user="bob")))
    broker.settle()
    assert client.closed
    assert client.connection.principal == ALICE


# --- the end of a token -----------------------------------------------------------------------------------------------


def answer(broker: Served, client: Client, data: bytes, method: str = "token") -> None:
    response = pb.AuthData(auth_method_name=method, auth_data=data)
    client.send(pb.CommandAuthResponse(client_version="by hand", protocol_version=20, response=response))
    broker.settle()


def test_a_client_is_asked_before_its_token_ends_and_goes_on_with_another(broker: Served) -> None:
    client = broker.connect(connect=connect("token", token(200)))
    for seconds in (139, 199):
        ping_away(broker, client, seconds)
        assert not challenges(client)
        ping_away(broker, client, 1)
        [challenge] = challenges(client)
        assert (challenge.auth_method_name, challenge.auth_data) == ("token", b"PulsarAuthRefresh")
        now_s = (broker.loop.now_ms - broker.begun_ms) / 1000
        answer(broker, client, token(now_s + 260))
    ping_away(broker, client, 190)
    assert not client.closed


def challenges(client: Client) -> list[pb.AuthData]:
    return [each.challenge for each in client.answers() if isinstance(each, pb.CommandAuthChallenge)]


def ping_away(broker: Served, client: Client, seconds: int) -> None:
    """Let time pass for a client that lives."""
    for _ in range(seconds):
        client.send(pb.CommandPing())
        broker.pass_time(1_000)


@pytest.mark.parametrize("refreshes", [True, False])
def test_a_client_that_does_not_answer_loses_its_connection_when_its_token_ends(
    broker: Served, refreshes: bool, caplog: pytest.LogCaptureFixture
) -> None:
    client = broker.connect(connect=connect("token", token(100), refreshes=refreshes))
    ping_away(broker, client, 99)
    assert len(challenges(client)) == refreshes
    assert is_served(broker, client)
    broker.pass_time(1_000)
    assert client.closed
    assert "what it has shown of itself holds no more" in caplog.text


@pytest.mark.parametrize(
    ("method", "data", "reason"),
    [
        ("token", token(500, "bob"), "alice logs in once more as another user"),
        ("basic", b"alice:sec:ret", "it repeats a login by token with basic"),
        ("tls", b"", "it repeats a login by token with tls"),
        ("", b"", "it repeats a login by token with "),
        ("token", token(0), "it has expired"),
        ("token", b"", "it is malformed"),
    ],
)
def test_another_user_or_method_is_refused(
    broker: Served, method: str, data: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = broker.connect(connect=connect("token", token(100)))
    broker.pass_time(50_000)
    answer(broker, client, data, method)
    client.send(pb.CommandPing())
    broker.pass_time(100)
    assert client.closed
    assert not [each for each in client.answers() if isinstance(each, pb.CommandPong)]
    assert reason in caplog.text


def test_an_answer_that_nobody_asked_for_ends_the_connection(broker: Served) -> None:
    client = broker.connect(connect=connect("token", token(100)))
    answer(broker, client, token(200))
    assert client.closed
    again = broker.connect(connect=connect("token", token(100)))
    broker.pass_time(50_000)
    answer(broker, again, token(200))
    assert not again.closed
    answer(broker, again, token(300))
    assert again.closed


def test_a_client_that_repeats_a_short_token_is_asked_a_few_times(broker: Served) -> None:
    client = broker.connect(connect=connect("token", token(40)))
    asked = 0
    for _ in range(400):
        broker.pass_time(100)
        if client.closed:
            break
        for _ in challenges(client):
            asked += 1
            answer(broker, client, token(40))
    assert client.closed
    assert 3 < asked < 10


def test_the_rest_of_a_token() -> None:
    assert rest_s(200, 60) == 140
    assert rest_s(80, 60) == 40
    assert rest_s(0.9, 60) is None
    assert rest_s(None, 60) is None


def test_who_does_not_log_in_in_time_is_closed(broker: Served) -> None:
    silent, quick = opened(broker), opened(broker, build_frame(connect("token", token())))
    broker.pass_time(int(LOGIN_SECONDS * 1_000) - 1)
    assert silent.connection in broker.connections
    broker.pass_time(1)
    assert silent.connection not in broker.connections
    assert quick.connection in broker.connections
