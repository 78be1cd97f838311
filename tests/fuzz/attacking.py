"""What attackers of all doors share: a loop in which clients come, send and go, and what must be so behind it."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

import jwt

from exacta.adapters.memory import MemoryStorage
from exacta.core.snapshot import is_same, replayed
from exacta.core.state.state import State
from exacta.engine.engine import Engine
from exacta.protocol.sasl.scram import ALGORITHMS, ScramKeys, keys_from_salted, salted_password
from tests.fuzz.choices import Choices

HIDDEN = "hid7e3a"
"""A part of every name and value that only the operator knows."""
MOST_STEPS = 40


class Attacking(Protocol):
    """A client in memory."""

    def is_closing(self) -> bool:
        """Return whether its connection ends."""


C = TypeVar("C", bound=Attacking)


def attack(
    choices: Choices,
    broker: Any,
    connect: Callable[[], C],
    step: Callable[[C], None],
    *,
    another_in: int = 12,
    lets_time_pass: bool = True,
) -> list[C]:
    """Let clients take steps one after another, as the choices say; return them when nothing happens any more."""
    clients: list[C] = []
    for _ in range(MOST_STEPS):
        if not choices.are_left:
            break
        if not clients or clients[-1].is_closing() or choices.once_in(another_in):
            clients.append(connect())
        step(clients[-1])
        if not choices.once_in(3):
            broker.settle()
        if lets_time_pass and choices.once_in(20):
            broker.pass_time(1 + choices.below(60_000))
    broker.settle()
    broker.pass_time(5_000)
    return clients


def durable(storage: MemoryStorage) -> list[Any]:
    """Return what has been written."""
    return [each for group in storage.groups for each in group.events]


def check_fold(engine: Engine, storage: MemoryStorage) -> None:
    """Raise AssertionError where the state is not what a restart would make of the journal."""

    def seen(state: State) -> None:
        assert is_same(replayed(None, durable(storage), state.limits), state)

    engine.read(lambda state, now_ms: seen(state), lambda _: None)


# --- what strangers show ----------------------------------------------------------------------------------------------


@cache
def keys_of(user: str, mechanism: str) -> ScramKeys | None:
    """Return the keys of alice, whose password nobody guesses."""
    if user != "alice":
        return None
    algorithm, salt = ALGORITHMS[mechanism], b"salt of alice"
    return keys_from_salted(algorithm, salted_password(algorithm, HIDDEN, salt, 4096), salt, 4096)


HEADER: tuple[tuple[str, Any], ...] = (
    *(("kid", "k"), ("kid", "../k"), ("jku", "https://e.example"), ("jwk", {"kty": "oct", "k": "AA"}), ("kid", 7)),
    *(("x5u", "file:///etc/passwd"), ("x5c", ["MII="]), ("crit", ["exp"]), ("b64", False), ("zip", "DEF")),
    *(("kid", None), ("alg", ["EdDSA"])),
)
CLAIMS: tuple[tuple[str, Any], ...] = (
    *(("exp", 1e400), ("exp", "x"), ("exp", -1), ("sub", ["a"]), ("aud", {"a": 1}), ("iss", []), ("nbf", 1e308)),
    *(("iat", "9" * 5_000), ("nbf", None), ("exp", True)),
)


def jwt_of(choices: Choices) -> bytes:
    """Return a token, or what looks like one; no key has signed it that the broker knows."""
    header: Any = {"alg": choices.pick(("EdDSA", "none", "HS256", "RS256", "ES256", "", "None")), "typ": "JWT"}
    claims: Any = {"sub": "alice", "aud": "exacta", "iss": "https://issuer.example", "exp": 4_000_000_000}
    for part, others in ((header, HEADER), (claims, CLAIMS)):
        key, value = choices.pick(others)
        part[key] = value
    texts = [json.dumps(header), json.dumps(claims), ""]
    if choices.once_in(4):
        texts[choices.below(2)] = choices.pick(("[" * 20_000, '{"a":' * 5_000, "null", "[]", "1e999", '"é"', "\ud800"))
    parts = [jwt.utils.base64url_encode(each.encode(errors="surrogatepass")) for each in texts]
    parts[2] = choices.pick((b"", b"A" * 86, b"AAAA", b"=", b"A" * 10_000))
    return b".".join(parts)
