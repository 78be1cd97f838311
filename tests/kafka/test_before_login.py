"""Connections without a login: how long they may take, and how many passwords an address tries."""

from typing import Any

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.sasl.scram import salted_password
from exacta.security.backoff import MOST_OPEN
from tests.kafka.test_logins import handshake, is_served, log_in, plain, quick_logins
from tests.kafka.wire import ANSWER_SECONDS, Front, front
from tests.waiting import wait_until


@pytest.fixture
def broker() -> Any:
    """A broker whose clients log in."""
    with front(logins=quick_logins) as running:
        yield running


def test_who_does_not_log_in_in_time_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exacta.front.arrivals.LOGIN_SECONDS", 0.3)
    with front(logins=quick_logins) as broker:
        quick, silent, half = broker.connect(), broker.connect(), broker.connect()
        assert log_in(quick).error_code == ErrorCode.NONE
        handshake(half, "PLAIN")
        assert silent.is_closed()
        assert half.is_closed()
        assert is_served(quick)
        assert not broker.on_loop(lambda: broker.context.arrivals._coming)


def test_who_hangs_up_and_comes_again_tries_no_more_passwords(broker: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def derive(algorithm: str, password: str, *rest: Any) -> bytes:
        tried.append(password)
        return salted_password(algorithm, password, *rest)

    monkeypatch.setattr("exacta.security.logins.salted_password", derive)
    monkeypatch.setattr("exacta.security.backoff.FORGIVEN_EACH_S", 1_000.0)
    wires = [broker.connect() for _ in range(3 * MOST_OPEN)]
    for number, wire in enumerate(wires):
        handshake(wire, "PLAIN")
        wire.send(plain(password=f"guess {number}"), 2)
        if number % 2:
            wire.socket.close()
    right = broker.connect()
    handshake(right, "PLAIN")
    right.send(plain(), 2)
    logins = broker.context.logins
    assert logins is not None

    def wrong() -> float:
        return logins.backoff._unforgiven("127.0.0.1")

    wait_until(lambda: broker.on_loop(wrong) > MOST_OPEN - 1, ANSWER_SECONDS, "the guesses that are let through")
    assert 0 < len(tried) <= MOST_OPEN  # of who has hung up before its turn nothing is looked at
    assert broker.on_loop(wrong) <= MOST_OPEN
    assert "secret" not in tried
