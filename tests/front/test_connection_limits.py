"""Which connections are let in: at the bounds, and what is logged of those beyond."""

import logging
import resource
from typing import Any

import pytest

import exacta
from exacta.config.configuration import Configuration
from exacta.front.connection_limits import LOOPBACK_RESERVE, QUIET_SECONDS, Admission
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest
from exacta.server.open_files import files_allowed
from exacta.server.process import allow_many_files
from tests.kafka.test_configs import BROKER, DELETE, SET, changes
from tests.kafka.wire import Wire


def admission(most: int = 100, most_per_host: int = 100) -> Admission:
    return Admission(lambda: (most, most_per_host), lambda: 0.0)


def test_of_one_host_as_many_as_may_be() -> None:
    doors = admission(most_per_host=2)
    assert [doors.admit("a"), doors.admit("a"), doors.admit("a"), doors.admit("b")] == [True, True, False, True]
    doors.leave("a")
    assert [doors.admit("a"), doors.admit("a")] == [True, False]


def test_of_all_as_many_as_may_be() -> None:
    doors = admission(most=2)
    assert [doors.admit("a"), doors.admit("b"), doors.admit("c")] == [True, True, False]
    doors.leave("b")
    assert [doors.admit("c"), doors.admit("b")] == [True, False]


def test_a_bound_that_changes_holds_for_the_next_connection() -> None:
    bounds = 2, 2
    doors = Admission(lambda: bounds, lambda: 0.0)
    assert [doors.admit("a"), doors.admit("a"), doors.admit("a")] == [True, True, False]
    bounds = 4, 3
    assert [doors.admit("a"), doors.admit("a"), doors.admit("b")] == [True, False, True]
    bounds = 1, 1
    doors.leave("b")
    assert doors.admit("b") is False


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_a_few_more_of_the_machine_itself(host: str) -> None:
    """An operator can still look, and change the bound, when others have taken all connections."""
    doors = admission(most=1)
    assert [doors.admit("10.0.0.1"), doors.admit("10.0.0.2")] == [True, False]
    assert [doors.admit(host) for _ in range(LOOPBACK_RESERVE + 1)] == [True] * LOOPBACK_RESERVE + [False]
    doors.leave(host)
    assert [doors.admit("10.0.0.2"), doors.admit(host)] == [False, True]


@pytest.mark.parametrize("host", ["10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "", "no address"])
def test_no_more_of_others(host: str) -> None:
    assert not admission(most_per_host=0).admit(host)


def test_hosts_that_were_turned_away_are_not_remembered() -> None:
    doors = admission(most=0)
    assert not any(doors.admit(f"10.0.0.{number}") for number in range(100))
    assert not doors._hosts


def test_a_flood_is_a_few_lines_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    doors = Admission(lambda: (0, 1), lambda: now)
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            doors.admit("a")
        now = QUIET_SECONDS
        doors.admit("a")
    first, second = [record.getMessage() for record in caplog.records]
    assert first == ("closing a connection of a: there are 0 already (max.connections, or half of the files)")
    assert second.startswith("closing a connection of a, and 49 more since the last such line: ")


@pytest.mark.parametrize("option", ["max_connections", "max_connections_per_ip"])
def test_a_server_closes_what_is_beyond_and_takes_another_when_there_is_room(option: str) -> None:
    with exacta.Broker(config={option: 2}) as broker:
        host, port = broker.bootstrap_servers.split(":")
        inside = [Wire((host, int(port))) for _ in range(2 + LOOPBACK_RESERVE)]
        for wire in inside:
            wire.ask(HeartbeatRequest(group_id="g"), 2)
        outside = Wire((host, int(port)))
        assert outside.is_closed()
        outside.socket.close()
        inside[0].socket.close()
        while True:  # until the server has seen that one is gone
            again = Wire((host, int(port)))
            try:
                again.ask(HeartbeatRequest(group_id="g"), 2)
                break
            except ConnectionError:
                again.socket.close()
        for wire in (*inside[1:], again):
            wire.socket.close()


@pytest.mark.parametrize("option", ["max.connections", "max.connections.per.ip"])
def test_a_bound_is_set_while_the_server_runs(option: str) -> None:
    with exacta.Broker() as broker:
        host, port = broker.bootstrap_servers.split(":")
        inside = [Wire((host, int(port)))]
        assert changes(inside[0], (option, SET, "10"), kind=BROKER, name="").error_code == ErrorCode.NONE
        for _ in range(9 + LOOPBACK_RESERVE):
            inside.append(Wire((host, int(port))))
            inside[-1].ask(HeartbeatRequest(group_id="g"), 2)
        outside = Wire((host, int(port)))
        assert outside.is_closed()
        outside.socket.close()
        assert changes(inside[0], (option, DELETE, None), kind=BROKER, name="").error_code == ErrorCode.NONE
        inside.append(Wire((host, int(port))))
        inside[-1].ask(HeartbeatRequest(group_id="g"), 2)
        for wire in inside:
            wire.socket.close()


def test_connections_leave_files_for_the_journal() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 300), hard))
        assert files_allowed() == 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("hard", "options", "warned"),
    [
        (1_024, {}, "only 1024 files may be open, so at most 512 connections"),
        (100_000, {}, ""),
        (100_000, {"max_connections": 50_000}, ""),
        (100_000, {"max_connections": 50_001}, "only 100000 files may be open, so at most 50000 connections"),
        (resource.RLIM_INFINITY, {"max_connections": 10**6}, ""),
    ],
)
def test_few_files_are_told_of_at_the_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, hard: int, options: dict[str, Any], warned: str
) -> None:
    limits = [min(hard, 256) if hard > 0 else 256, hard]
    monkeypatch.setattr(resource, "getrlimit", lambda which: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda which, new: limits.__setitem__(slice(None), new))
    allow_many_files(Configuration(**options))
    assert limits == [hard, hard]
    assert bool(caplog.records) is bool(warned)
    assert warned in caplog.text
