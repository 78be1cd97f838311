"""The logins of a server: what its options must say, the secret of unknown users, and a user who logs in."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from exacta.config.errors import ConfigurationError
from exacta.config.options import configure
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.commands.access import AlterScramKeys
from exacta.core.values.scram import ScramAlteration, ScramMechanism
from exacta.front.doors import Door, Endpoint, TransportSecurity
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest
from exacta.protocol.sasl.scram import ScramError, keys_from_salted, salted_password
from exacta.protocol.sasl.scram_client import ScramClient
from exacta.security.exchange import LoginRefused
from exacta.security.scram_keys import kept_key
from exacta.server.errors import ServerError
from exacta.server.logins import SECRET_FILE, clear_text, mechanisms_of
from exacta.server.server import Server
from exacta.testing.authority import Authority
from tests.kafka.wire import Wire
from tests.server.served import OPTIONS, Served

LOCAL = Endpoint("127.0.0.1", 0)
BEARER = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "https://issuer.example/keys",
    "sasl.oauthbearer.expected.issuer": "https://issuer.example",
    "sasl.oauthbearer.expected.audience": "exacta",
}
CLOSED = {"authorizer.class.name": STANDARD_AUTHORIZER}


def door(**more: Any) -> Door:
    return Door(**{"front": "kafka", "name": "SASL", "endpoint": LOCAL, "login": True, **more})


@contextmanager
def opened(
    data: Path, options: dict[str, Any] | None = None, **more: Any
) -> Iterator[tuple[Server, Callable[..., Any]]]:
    """Open a server with one door that asks for a login; the function runs what it is given on the server's loop."""
    configuration = configure(options or {})
    loop = asyncio.new_event_loop()
    server = Server(loop, configuration, data, [door(**more)])
    try:
        server.open()
        yield server, loop.run_until_complete
        loop.run_until_complete(server.stop())
    finally:
        server.abandon()
        loop.close()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-1"}, "there is no 'SCRAM-SHA-1' here: name some of SCRAM-SHA-256"),
        ({"sasl.enabled.mechanisms": "PLAIN,,SCRAM-SHA-256"}, "there is no ''"),
        *(
            ({other: BEARER[other] for other in BEARER if other != name}, f"{name} must be set")
            for name in BEARER
            if name.startswith("sasl.oauthbearer")
        ),
        ({**BEARER, "sasl.oauthbearer.expected.audience": ","}, "sasl.oauthbearer.expected.audience must be set"),
        ({**BEARER, "sasl.oauthbearer.jwks.endpoint.url": "http://issuer.example"}, "https:// or file://"),
        ({**BEARER, "sasl.oauthbearer.jwks.endpoint.url": "/etc/keys.json"}, "https:// or file://"),
        ({**BEARER, "sasl.oauthbearer.jwks.endpoint.url": "file:///no/such/file"}, "cannot be read"),
    ],
)
def test_an_option_that_is_missing_or_misspelt_is_an_error_at_the_start(
    tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ServerError, match=sentence), opened(tmp_path / "data", options):
        pass


@pytest.mark.parametrize("name", [*BEARER, "sasl.oauthbearer.sub.claim.name"])
def test_an_option_that_is_empty_is_an_error(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name} is empty"):
        configure({**BEARER, name: " "})


def test_passwords_and_tokens_pass_no_door_unencrypted_beyond_this_machine(tmp_path: Path) -> None:
    options = {"sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN"}
    with (
        pytest.raises(ServerError, match="PLAIN would send secrets over it unencrypted"),
        opened(tmp_path / "data", options, endpoint=Endpoint("0.0.0.0", 0)),
    ):
        pass
    for mechanism, clear in {"PLAIN": True, "OAUTHBEARER": True, "SCRAM-SHA-256": False}.items():
        configuration = configure({"sasl.enabled.mechanisms": mechanism})
        assert clear_text(door(), configuration) == (mechanism if clear else None)
        assert clear_text(door(security=TransportSecurity.TLS), configuration) is None
        assert clear_text(door(login=False), configuration) is None


PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
BY_TOKEN = {
    "authenticationEnabled": True,
    "authenticationProviders": f"{PROVIDER}Token,{PROVIDER}Basic,{PROVIDER}Tls",
    "tokenSecretKey": "data:;base64," + "c2Vj" * 16,
}


def test_pulsar_clients_log_in_where_authentication_is_enabled(tmp_path: Path) -> None:
    with opened(tmp_path / "data", BY_TOKEN, front="pulsar", login=False) as (server, _):
        assert server.reception.doors[0].login
        assert server._broker is not None
        assert server._broker.logins is not None
        assert server._broker.logins.methods == {"token", "basic", "tls"}
    with opened(tmp_path / "other", front="pulsar", login=False) as (server, _):
        assert not server.reception.doors[0].login


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (BY_TOKEN | {"tokenSecretKey": "file:///no/such/key"}, "tokenSecretKey: cannot read /no/such/key"),
        (BY_TOKEN | {"tokenSecretKey": "data:,short"}, "tokenSecretKey has 5 bytes"),
    ],
)
def test_a_key_of_tokens_that_is_none_is_an_error_at_the_start(
    tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ServerError, match=sentence), opened(tmp_path / "data", options, front="pulsar"):
        pass


def test_what_pulsar_clients_send_passes_no_door_unencrypted_beyond_this_machine(tmp_path: Path) -> None:
    with (
        pytest.raises(ServerError, match="basic would send secrets over it unencrypted: listen"),
        opened(tmp_path / "data", BY_TOKEN, front="pulsar", endpoint=Endpoint("0.0.0.0", 0)),
    ):
        pass
    by_certificate = configure({**BY_TOKEN, "authenticationProviders": f"{PROVIDER}Token"})
    assert clear_text(door(front="pulsar"), by_certificate) == "token"
    assert clear_text(door(front="pulsar", security=TransportSecurity.TLS), by_certificate) is None


@pytest.mark.parametrize("front", ["pulsar", "web"])
def test_a_door_that_lets_in_by_password_or_token_is_no_open_door(tmp_path: Path, front: str) -> None:
    """One that other machines reach needs TLS for them, and no `allow.anonymous`."""
    everywhere = Endpoint("0.0.0.0", 0)
    with (
        pytest.raises(ServerError, match="clients need no login"),
        opened(tmp_path / "data", front=front, login=False, endpoint=everywhere),
    ):
        pass
    with (
        pytest.raises(ServerError, match="basic would send secrets over it unencrypted: listen"),
        opened(tmp_path / "data", BY_TOKEN, front=front, login=False, endpoint=everywhere),
    ):
        pass
    authority = Authority("127.0.0.1")
    secured = {"front": front, "login": False, "endpoint": everywhere, "security": TransportSecurity.TLS}
    with opened(tmp_path / "data", BY_TOKEN | {"ssl.keystore.location": authority.server}, **secured) as (server, _):
        assert server.reception.doors[0].login
        assert not server.reception.open_to_all


def test_mechanisms_are_offered_in_the_operators_order() -> None:
    configuration = configure({"sasl.enabled.mechanisms": " PLAIN , SCRAM-SHA-512,PLAIN"})
    assert mechanisms_of(configuration) == ("PLAIN", "SCRAM-SHA-512")


def add(server: Server, user: str, password: str) -> asyncio.Future[Any]:
    salt = b"salt of sixteen."
    key = kept_key(ScramMechanism.SCRAM_SHA_256, salt, 4096, salted_password("sha256", password, salt, 4096))
    done: asyncio.Future[Any] = server._loop.create_future()
    command = AlterScramKeys(alterations=(ScramAlteration(user, ScramMechanism.SCRAM_SHA_256, key),))
    server.engine.submit((command,), done.set_result)
    return done


def log_in(server: Server, user: str, password: str) -> bytes:
    """Log in; return what the server has said first."""
    assert server._broker is not None
    assert server._broker.logins is not None
    exchange = server._broker.logins.begin("SCRAM-SHA-256")
    assert exchange is not None
    client = ScramClient("sha256", user, password)
    first = exchange.send(client.first())
    assert isinstance(first, bytes)
    try:
        exchange.send(client.final(first))
    except StopIteration as end:
        client.verify(end.value.last_message)
        return first
    except LoginRefused:
        return first + b" refused"
    raise AssertionError("the exchange has no end")


def test_a_user_logs_in_by_a_durable_key_and_an_unknown_one_has_one_salt_for_ever(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with opened(data, CLOSED) as (server, run):
        run(add(server, "alice", "secret"))
        assert not log_in(server, "alice", "secret").endswith(b"refused")
        unknown = log_in(server, "nobody", "secret")
    assert unknown.endswith(b"refused")
    assert (data / SECRET_FILE).stat().st_mode & 0o777 == 0o600
    with opened(data, CLOSED) as (server, _):
        assert not log_in(server, "alice", "secret").endswith(b"refused")
        assert log_in(server, "alice", "guess").endswith(b"refused")
        assert log_in(server, "nobody", "secret").split(b",", 1)[1] == unknown.split(b",", 1)[1]


def test_a_server_without_logins_keeps_no_secret(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with opened(data, login=False) as (server, _):
        assert server._broker is not None
        assert server._broker.logins is None
    assert not (data / SECRET_FILE).exists()


def test_a_secret_that_is_none_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with opened(data):
        pass
    (data / SECRET_FILE).write_bytes(b"short")
    with pytest.raises(ServerError, match="remove it"), opened(data):
        pass


def test_no_secret_is_shown_by_a_trace(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with opened(tmp_path / "data") as (server, run):
        run(add(server, "alice", "secret"))
        log_in(server, "alice", "secret")
    salt = b"salt of sixteen."
    keys = keys_from_salted("sha256", salted_password("sha256", "secret", salt, 4096), salt, 4096)
    assert "the keys of user 'alice' were changed, who logs in by SCRAM-SHA-256" in caplog.text
    for secret in (keys.stored_key, keys.server_key):
        assert secret.hex() not in caplog.text
        assert repr(secret)[2:-1] not in caplog.text


def test_scram_error_is_no_secret() -> None:
    with pytest.raises(ScramError) as error:
        ScramClient("sha256", "u", "secret", nonce="mine").final(b"r=other,s=QSXCR+Q6sek8bf92,i=4096")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("own", "offered"), [(None, ["SCRAM-SHA-512"]), ("PLAIN, SCRAM-SHA-256", ["PLAIN", "SCRAM-SHA-256"])]
)
def test_a_listener_offers_mechanisms_of_its_own(tmp_path: Path, own: str | None, offered: list[str]) -> None:
    options = OPTIONS | {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    with Served(tmp_path / "data", options, None if own is None else {"sasl_enabled_mechanisms": own}) as served:
        host, _, port = served.secured.rpartition(":")
        for asked in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            wire = Wire((host, int(port)))
            answer = wire.ask(SaslHandshakeRequest(mechanism=asked), 1)
            assert (answer.mechanisms, answer.error_code == 0) == (offered, asked in offered)
            wire.socket.close()
