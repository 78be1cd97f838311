"""The exchanges of all mechanisms: the right password logs in, and nobody learns which users there are."""

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest

from exacta.client import users
from exacta.protocol.sasl.scram import ALGORITHMS, ScramKeys, decoded, keys_from_salted, salted_password
from exacta.protocol.sasl.scram_client import ScramClient
from exacta.security import logins as module
from exacta.security.backoff import LoginBackoff
from exacta.security.exchange import LoggedIn, LoginRefused
from exacta.security.logins import PLAIN, Logins

PASSWORD_MECHANISMS = (*ALGORITHMS, PLAIN)
PASSWORDS = {"alice": "secret", "Jürgen,=x": "päss"}


def keys_of(user: str, mechanism: str) -> ScramKeys | None:
    """Return the keys of a user of these tests."""
    if user not in PASSWORDS:
        return None
    algorithm, salt = ALGORITHMS[mechanism], f"salt of {user}".encode()
    return keys_from_salted(algorithm, salted_password(algorithm, PASSWORDS[user], salt, 4096), salt, 4096)


def logins(secret: bytes = b"a secret", mechanisms: tuple[str, ...] = PASSWORD_MECHANISMS) -> Logins:
    return Logins(mechanisms, LoginBackoff(0.1, lambda: 0.0), keys_of=keys_of, secret=secret, wall_ms=lambda: 0)


def log_in(mechanism: str, user: str, password: str, at: Logins | None = None, *, steps: Any = None) -> LoggedIn:
    """Log in; raises `LoginRefused`. `steps` gets what each step yields."""
    exchange = (at or logins()).begin(mechanism)
    assert exchange is not None

    def say(message: bytes) -> bytes:
        found = exchange.send(message)
        while not isinstance(found, bytes):
            found = exchange.send(found())
        if steps is not None:
            steps.append(found)
        return found

    try:
        if mechanism == "PLAIN":
            say(f"\0{user}\0{password}".encode())
        else:
            client = ScramClient(ALGORITHMS[mechanism], user, password)
            say(client.final(say(client.first())))
    except StopIteration as end:
        found: LoggedIn = end.value
        if mechanism != "PLAIN":
            client.verify(found.last_message)
        return found
    raise AssertionError("the exchange has no end")


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize("user", PASSWORDS)
def test_the_right_password_logs_in(mechanism: str, user: str) -> None:
    assert str(log_in(mechanism, user, PASSWORDS[user]).principal) == f"User:{user}"


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "Secret"), ("alice", "secret "), ("bob", "secret")])
def test_another_password_or_user_is_refused(mechanism: str, user: str, password: str) -> None:
    with pytest.raises(LoginRefused) as refused:
        log_in(mechanism, user, password)
    assert refused.value.user == user
    assert password not in str(refused.value)


def test_a_mechanism_that_is_not_offered_does_not_begin() -> None:
    assert logins(mechanisms=("SCRAM-SHA-512",)).begin("PLAIN") is None
    assert logins().begin("plain") is None
    assert logins().begin("") is None


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count what is derived."""
    calls: list[str] = []

    def noted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any) -> Any:
            calls.append(name)
            return call(*args)

        return counting

    monkeypatch.setattr(module, "salted_password", noted("salted", salted_password))
    monkeypatch.setattr(module, "keys_from_salted", noted("keys", keys_from_salted))
    monkeypatch.setattr(hmac, "digest", noted("hmac", hmac.digest))
    monkeypatch.setattr(hashlib, "new", noted("hash", hashlib.new))
    monkeypatch.setattr(hmac, "compare_digest", noted("compare", hmac.compare_digest))
    return calls


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_an_unknown_user_takes_the_same_steps_as_a_known_one(mechanism: str, counted: list[str]) -> None:
    kept = keys_of("alice", mechanism if mechanism in ALGORITHMS else "SCRAM-SHA-256")
    at = Logins(
        PASSWORD_MECHANISMS,
        LoginBackoff(0.1, lambda: 0.0),
        keys_of=lambda name, _: kept if name == "alice" else None,
        secret=b"a secret",
        wall_ms=lambda: 0,
    )
    taken = []
    for user in ("alice", "nobody"):
        counted.clear()
        with pytest.raises(LoginRefused):
            log_in(mechanism, user, "wrong", at)
        taken.append(list(counted))
    assert taken[0] == taken[1] != []


@pytest.mark.parametrize("mechanism", ALGORITHMS)
def test_an_unknown_user_has_one_salt_for_ever_and_no_other_has_it(mechanism: str) -> None:
    def salt(user: str, secret: bytes = b"a secret") -> bytes:
        said: list[bytes] = []
        with pytest.raises(LoginRefused):
            log_in(mechanism, user, "wrong", logins(secret), steps=said)
        return said[0].split(b",", 1)[1]

    assert salt("nobody") == salt("nobody")
    assert len({salt("nobody"), salt("somebody"), salt("nobody", b"another secret"), salt("alice")}) == 4


@pytest.mark.parametrize("mechanism", ALGORITHMS)
def test_an_unknown_user_looks_like_one_of_exacta_users_add(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(users, "_alter", lambda client, request, what: asked.append(request.upsertions[0]))
    users.set_password(None, "alice", "secret", mechanism)  # type: ignore[arg-type]
    said: list[bytes] = []
    with pytest.raises(LoginRefused):
        log_in(mechanism, "nobody", "wrong", steps=said)
    attributes = dict(each.split("=", 1) for each in said[0].decode().split(","))
    shape = len(decoded(attributes["s"])), int(attributes["i"])
    assert shape == (len(asked[0].salt), asked[0].iterations)


def test_a_password_that_was_right_is_not_derived_again_until_the_key_changes(counted: list[str]) -> None:
    kept = {name: keys_of(name, "SCRAM-SHA-256") for name in PASSWORDS}
    at = Logins(
        (PLAIN,),
        LoginBackoff(0.1, lambda: 0.0),
        keys_of=lambda name, _: kept.get(name),
        secret=b"x",
        wall_ms=lambda: 0,
        clock=lambda: 0.0,
    )
    counted.clear()
    for expected in (1, 1):
        assert log_in(PLAIN, "alice", "secret", at).principal.name == "alice"
        assert counted.count("salted") == expected
    for other in ("wrong", "wrong"):
        with pytest.raises(LoginRefused):
            log_in(PLAIN, "alice", other, at)
    assert counted.count("salted") == 3
    kept["alice"] = keys_of("Jürgen,=x", "SCRAM-SHA-256")
    with pytest.raises(LoginRefused):
        log_in(PLAIN, "alice", "secret", at)
    del kept["alice"]
    with pytest.raises(LoginRefused):
        log_in(PLAIN, "alice", "secret", at)
