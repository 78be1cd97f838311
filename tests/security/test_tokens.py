"""Tokens: who signed them, for whom, until when; and the ways to make a server choose the wrong key or algorithm."""

import base64
import hashlib
import hmac
import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from exacta.protocol.sasl import bearer
from exacta.security.bearer_login import bearer_login
from exacta.security.exchange import LoggedIn, LoginRefused
from exacta.security.token_keys import KEPT_S, KeySet, KeysUnavailable
from exacta.security.tokens import TokenRefused, TokenRules, Tokens

RULES = TokenRules(audiences=("exacta",), issuer="https://issuer.example")
PRIVATE: dict[str, Any] = {
    "rsa": rsa.generate_private_key(65537, 2048),
    "ec": ec.generate_private_key(ec.SECP256R1()),
    "ed": ed25519.Ed25519PrivateKey.generate(),
}
ALGORITHM = {"rsa": "RS256", "ec": "ES256", "ed": "EdDSA"}
STRANGER = rsa.generate_private_key(65537, 2048)


def jwk(private: Any, kind: str, **more: Any) -> dict[str, Any]:
    """Return the public part of a key as an entry of a key set."""
    algorithm = jwt.get_algorithm_by_name(ALGORITHM[kind])
    return {**algorithm.to_jwk(private.public_key(), as_dict=True), **more}


NEVER = 1_000_000_000
"""A claim of a time below this many seconds is one from now on."""


def claims(**changed: Any) -> dict[str, Any]:
    now_s = int(time.time())
    known = {"sub": "alice", "aud": "exacta", "iss": RULES.issuer, "exp": now_s + 600, "iat": now_s}
    times = {key: now_s + changed[key] for key in ("exp", "nbf") if abs(changed.get(key) or NEVER) < NEVER}
    return {key: value for key, value in {**known, **changed, **times}.items() if value is not None}


def token(kind: str = "rsa", *, headers: dict[str, Any] | None = None, **changed: Any) -> str:
    return jwt.encode(claims(**changed), PRIVATE[kind], ALGORITHM[kind], headers={"kid": kind, **(headers or {})})


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def write_keys(path: Path, *kinds: str) -> None:
    path.write_text(json.dumps({"keys": [jwk(PRIVATE[kind], kind, kid=kind) for kind in kinds]}))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    write_keys(path, *PRIVATE)
    return path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(path: Path, clock: Clock) -> Tokens:
    keys = KeySet(path.as_uri(), 100.0, clock)
    keys.load()
    return Tokens(RULES, keys)


@pytest.mark.parametrize("kind", PRIVATE)
def test_a_token_of_each_kind_of_key(tokens: Tokens, kind: str) -> None:
    proved = tokens.prove(token(kind))
    assert proved.subject == "alice"
    assert proved.expires_s == pytest.approx(time.time() + 600, abs=60)


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": None},
        {"aud": None},
        {"iss": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"exp": -31},
        {"nbf": 600},
        {"aud": "another"},
        {"aud": []},
        {"iss": "https://issuer.example.evil"},
    ],
    ids=str,
)
def test_every_claim_is_required_and_checked(tokens: Tokens, changed: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused):
        tokens.prove(token(**changed))


def test_clocks_may_differ_by_half_a_minute(tokens: Tokens) -> None:
    assert tokens.prove(token(exp=-20)).subject == "alice"


def part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def public_pem(kind: str) -> bytes:
    return bytes(
        PRIVATE[kind]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def hmac_by(secret: bytes) -> str:
    """Return a token whose signature is an HMAC with a public key's text: the oldest confusion of algorithms."""
    signed = f"{part({'alg': 'HS256', 'kid': 'rsa', 'typ': 'JWT'})}.{part(claims())}"
    signature = hmac.digest(secret, signed.encode(), hashlib.sha256)
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


ATTACKS = {
    "none": lambda: f"{part({'alg': 'none', 'kid': 'rsa'})}.{part(claims())}.",
    "None": lambda: f"{part({'alg': 'None', 'kid': 'rsa'})}.{part(claims())}.",
    "no algorithm": lambda: f"{part({'kid': 'rsa'})}.{part(claims())}.",
    "hmac with the public key": lambda: hmac_by(public_pem("rsa")),
    "hmac with nothing": lambda: hmac_by(b""),
    "a stranger's key": lambda: jwt.encode(claims(), STRANGER, "RS256", headers={"kid": "rsa"}),
    "a stranger's key in the header": lambda: jwt.encode(
        claims(), STRANGER, "RS256", headers={"kid": "rsa", "jwk": jwk(STRANGER, "rsa")}
    ),
    "a stranger's address": lambda: jwt.encode(
        claims(), STRANGER, "RS256", headers={"kid": "rsa", "jku": "https://evil.example/keys"}
    ),
    "a stranger's certificate": lambda: jwt.encode(
        claims(), STRANGER, "RS256", headers={"kid": "rsa", "x5c": ["MII="]}
    ),
    "an address of a stranger's certificate": lambda: jwt.encode(
        claims(), STRANGER, "RS256", headers={"kid": "rsa", "x5u": "https://evil.example/certificate"}
    ),
    "our own key's secret part made up": lambda: jwt.encode(
        claims(), STRANGER, "RS256", headers={"kid": "rsa", "jwk": jwk(PRIVATE["rsa"], "rsa")}
    ),
    "another key of ours by a path": lambda: token(headers={"kid": "./rsa"}),
    "a list of key ids": lambda: f"{part({'alg': 'RS256', 'kid': ['rsa']})}.{part(claims())}.AAAA",
    "an empty key id": lambda: token(headers={"kid": ""}),
    "an unknown key": lambda: token(headers={"kid": "../../etc/passwd"}),
    "no key id among several": lambda: jwt.encode(claims(), PRIVATE["rsa"], "RS256"),
    "a number for a key id": lambda: f"{part({'alg': 'RS256', 'kid': 7})}.{part(claims())}.AAAA",
    "another kind of key": lambda: jwt.encode(claims(), PRIVATE["ec"], "ES256", headers={"kid": "rsa"}),
    "crit": lambda: token(headers={"crit": ["exp"]}),
    "a changed claim": lambda: ".".join(
        (lambda parts: (parts[0], part(claims(sub="root")), parts[2]))(token().split("."))
    ),
    "no signature": lambda: token().rpartition(".")[0] + ".",
    "nothing": lambda: "",
    "two dots": lambda: "..",
    "no token": lambda: "a.b.c",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attacker_gets_nowhere(tokens: Tokens, attack: str) -> None:
    with pytest.raises(TokenRefused):
        tokens.prove(ATTACKS[attack]())


# --- the keys ---------------------------------------------------------------------------------------------------------


def test_a_new_key_of_the_issuer_is_found_when_a_token_names_it(tokens: Tokens, path: Path, clock: Clock) -> None:
    write_keys(path, "rsa")
    tokens.keys.load()
    clock.now_s += 50
    write_keys(path, "rsa", "ec")
    assert not tokens.keys.should_renew("rsa")
    assert tokens.keys.should_renew("ec")
    tokens.keys.renew()
    assert not tokens.keys.should_renew("unknown"), "they were read just now"
    path.unlink()
    tokens.keys.renew()
    assert tokens.prove(token("ec")).subject == "alice"


def test_old_keys_hold_for_an_hour_after_they_could_not_be_renewed(tokens: Tokens, path: Path, clock: Clock) -> None:
    path.unlink()
    clock.now_s += 101
    assert tokens.keys.should_renew("rsa")
    tokens.keys.renew()
    assert tokens.prove(token()).subject == "alice"
    clock.now_s = 100 + KEPT_S
    with pytest.raises(TokenRefused, match="its key is not known"):
        tokens.prove(token())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"keys": 7}',
        '{"keys": [7]}',
        '{"keys": []}',
        '{"keys": [{"kty": "oct", "kid": "a", "k": "c2VjcmV0"}]}',
        '{"keys": [{"kty": "RSA", "kid": "a"}]}',
        json.dumps({"keys": [jwk(PRIVATE["rsa"], "rsa", use="enc")]}),
    ],
)
def test_what_is_no_key_set(path: Path, clock: Clock, text: str) -> None:
    path.write_text(text)
    with pytest.raises(KeysUnavailable):
        KeySet(path.as_uri(), 100.0, clock).load()


def test_a_key_set_has_a_bound(path: Path, clock: Clock) -> None:
    path.write_text(" " * (1 << 20) + "{}")
    with pytest.raises(KeysUnavailable, match="more than"):
        KeySet(path.as_uri(), 100.0, clock).load()


class Issuer(BaseHTTPRequestHandler):
    """An issuer of tokens with an address that moves, one that is too long, and one of keys."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(302 if self.path == "/moved" else 200)
        self.send_header("Location", "/keys")
        self.end_headers()
        self.wfile.write(b" " * (2 << 20) if self.path == "/long" else json.dumps({"keys": KEYS}).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


KEYS = [jwk(PRIVATE["rsa"], "rsa", kid="rsa")]


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = HTTPServer(("localhost", 0), Issuer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://localhost:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_keys_come_from_an_https_address(issuer: str, clock: Clock) -> None:
    keys = KeySet(f"{issuer}/keys", 100.0, clock)
    keys.load()
    assert Tokens(RULES, keys).prove(token()).subject == "alice"


@pytest.mark.parametrize("page", ["moved", "long"])
def test_an_address_that_moves_or_sends_too_much_gives_no_keys(issuer: str, clock: Clock, page: str) -> None:
    with pytest.raises(KeysUnavailable):
        KeySet(f"{issuer}/{page}", 100.0, clock).load()


def test_an_issuer_whose_certificate_nobody_knows_gives_no_keys(
    issuer: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(KeysUnavailable, match="certificate"):
        KeySet(f"{issuer}/keys", 100.0, clock).load()


# --- the exchange -----------------------------------------------------------------------------------------------------


def log_in(tokens: Tokens, message: bytes) -> LoggedIn:
    """Log in; raises `LoginRefused`, after the client has acknowledged that."""
    exchange = bearer_login(tokens)
    next(exchange)
    try:
        answer = exchange.send(message)
        while not isinstance(answer, bytes):
            answer = exchange.send(answer())
        assert answer == bearer.REFUSED
        exchange.send(bearer.ACKNOWLEDGED)
    except StopIteration as end:
        found: LoggedIn = end.value
        return found
    raise AssertionError("the exchange has no end")


def test_a_session_ends_with_its_token(tokens: Tokens) -> None:
    found = log_in(tokens, b"n,,\x01auth=Bearer " + token(exp=2_000_000_000).encode() + b"\x01\x01")
    assert str(found.principal) == "User:alice"
    assert found.expires_ms == 2_000_000_000_000 + 30_000, "the skew"


def test_the_session_of_a_token_that_is_taken_after_its_end_lasts_until_the_skew_is_over(tokens: Tokens) -> None:
    ended_s = int(time.time()) - 10
    assert tokens.prove(token(exp=ended_s)).expires_s == ended_s + RULES.skew_s


def test_extensions_are_passed_over_and_the_user_may_be_named(tokens: Tokens) -> None:
    message = b"n,a=alice,\x01logicalCluster=lkc\x01auth=bearer " + token().encode() + b"\x01\x01"
    assert log_in(tokens, message).principal.name == "alice"


@pytest.mark.parametrize("exp", [1e308, 10**400], ids=["float", "int"])
def test_a_token_may_end_later_than_any_clock_counts(tokens: Tokens, exp: float) -> None:
    assert tokens.prove(token(exp=exp)).expires_ms == 253_402_300_830_000


def test_nobody_logs_in_by_a_name_that_is_no_text(tokens: Tokens) -> None:
    message = b"n,,\x01auth=Bearer " + token(sub="\ud800").encode() + b"\x01\x01"
    with pytest.raises(LoginRefused, match="its name cannot be shown"):
        log_in(tokens, message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic YTpi\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01auth=Bearer a.b.c\x01\x01",
        b"n,a=root,\x01auth=Bearer TOKEN\x01\x01",
        b"y,,\x01auth=Bearer TOKEN\x01\x01",
        b"n,,\x01auth=Bearer TOKEN\x01",
    ],
)
def test_what_is_no_login(tokens: Tokens, message: bytes) -> None:
    with pytest.raises(LoginRefused) as refused:
        log_in(tokens, message.replace(b"TOKEN", token().encode()))
    assert token().split(".")[2] not in str(refused.value)


def test_a_client_that_goes_while_the_keys_are_read_keeps_nobody_from_them(tokens: Tokens, clock: Clock) -> None:
    def message(headers: dict[str, str]) -> bytes:
        return b"n,,\x01auth=Bearer " + token(headers=headers).encode() + b"\x01\x01"

    clock.now_s += 101
    for _ in range(2):
        exchange = bearer_login(tokens)
        next(exchange)
        work = exchange.send(message({"kid": "nobody's"}))
        exchange.close()
    assert tokens.keys.should_renew("rsa"), "the work was never done"
    assert callable(work)
    work()
    clock.now_s += KEPT_S
    assert log_in(tokens, message({})).principal.name == "alice"
