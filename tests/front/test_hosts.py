"""A client's address counts towards the share of its host: in tables of the state, for work on threads, at the door."""

import pytest

from exacta.front.connection_limits import LOOPBACK_RESERVE, Admission
from exacta.front.conversions import Conversions
from exacta.front.hosts import is_loopback, share_beyond_loopback, share_of


@pytest.mark.parametrize(
    ("host", "share"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::FFFF:0a00:0001", "10.0.0.1"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("a-name", "a-name"),
        ("", ""),
    ],
)
def test_a_share_is_that_of_an_ipv4_address_or_of_an_ipv6_network(host: str, share: str) -> None:
    assert share_of(host) == share


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_the_machine_itself_may_have_no_share(host: str) -> None:
    assert is_loopback(host)
    assert share_beyond_loopback(host) == ""


@pytest.mark.parametrize("host", ["10.0.0.1", "2001:db8::1", "a-name", ""])
def test_others_have_one(host: str) -> None:
    assert not is_loopback(host)
    assert share_beyond_loopback(host) == share_of(host)


def test_one_client_takes_one_thread_whatever_its_addresses() -> None:
    began: list[str] = []
    conversions = Conversions(lambda work, done: began.append(work()))
    for host in ("2001:db8::1", "2001:db8::2", "::ffff:10.0.0.1", "10.0.0.1"):
        conversions.on_thread(lambda host=host: host, lambda found: None, owner=host)  # type: ignore[misc]
    assert began == ["2001:db8::1", "::ffff:10.0.0.1"]


def test_connections_are_counted_by_address_as_kafka_does_and_a_mapped_one_is_that_of_ipv4() -> None:
    doors = Admission(lambda: (100, 1), lambda: 0.0)
    assert doors.admit("::ffff:10.0.0.1")
    assert not doors.admit("10.0.0.1")
    doors.leave("10.0.0.1")
    assert doors.admit("10.0.0.1")
    assert [doors.admit("2001:db8::1"), doors.admit("2001:db8::2"), doors.admit("2001:db8::2")] == [True, True, False]
    assert [doors.admit("::ffff:127.0.0.1") for _ in range(LOOPBACK_RESERVE + 1)].count(True) == LOOPBACK_RESERVE + 1
    assert not doors.admit("127.0.0.1")
