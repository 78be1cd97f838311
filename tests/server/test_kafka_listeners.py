"""Kafka's keys about listeners: which endpoint they come to, and which are refused."""

import pytest

from exacta.config.errors import ConfigurationError
from exacta.front.doors import Endpoint, TransportSecurity
from exacta.server.kafka_listeners import KafkaListeners, kafka_listeners, protocol_of

MAP = "listener.security.protocol.map"


@pytest.mark.parametrize(
    ("keys", "listen", "advertise"),
    [
        ({}, None, None),
        ({"listeners": "PLAINTEXT://127.0.0.1:1"}, Endpoint("127.0.0.1", 1), None),
        ({"listeners": "plaintext://[::1]:1"}, Endpoint("::1", 1), None),
        ({"advertised.listeners": "PLAINTEXT://b:2"}, None, Endpoint("b", 2)),
        (
            {
                "listeners": "CLIENTS://:1, C://:3",
                "advertised.listeners": "CLIENTS://b:2",
                "controller.listener.names": "C",
                MAP: "CLIENTS:PLAINTEXT,C:SSL",
            },
            Endpoint("", 1),
            Endpoint("b", 2),
        ),
    ],
)
def test_endpoints(keys: dict[str, str], listen: Endpoint | None, advertise: Endpoint | None) -> None:
    found = kafka_listeners(keys)
    if listen is None:
        assert found == KafkaListeners(advertise=advertise)
    else:
        assert [(each.endpoint, each.advertised) for each in found.doors] == [(listen, advertise)]


def test_a_listener_has_the_security_of_the_protocol_that_its_name_stands_for() -> None:
    keys = {"listeners": "SSL://:1,IN://:2,SASL_PLAINTEXT://:3,OUT://:4", MAP: "IN:plaintext, out : SASL_SSL"}
    doors = kafka_listeners(keys, {"SSL": {"ssl_client_auth": "required"}}).doors
    assert [(each.name, each.security, each.login) for each in doors] == [
        ("SSL", TransportSecurity.TLS, False),
        ("IN", TransportSecurity.PLAINTEXT, False),
        ("SASL_PLAINTEXT", TransportSecurity.PLAINTEXT, True),
        ("OUT", TransportSecurity.TLS, True),
    ]
    assert [protocol_of(each) for each in doors] == ["SSL", "PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL"]
    assert [dict(each.options) for each in doors] == [{"ssl_client_auth": "required"}, {}, {}, {}]


@pytest.mark.parametrize("keys", [{}, {"listeners": "SSL://:1"}])
def test_an_option_for_one_listener_needs_the_listener(keys: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"^listener\.name\.out: there is no listener OUT in listeners$"):
        kafka_listeners(keys, {"OUT": {"ssl_client_auth": "required"}})


BOTH = {MAP: "IN:PLAINTEXT,OUT:PLAINTEXT"}


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"listeners": "IN://:1,OUT://h:2", **BOTH}, [("IN", ":1"), ("OUT", "h:2")]),
        (
            {"listeners": "in://:1, out://h:2", "advertised.listeners": "OUT://o:4,IN://i:3", **BOTH},
            [("IN", "i:3"), ("OUT", "o:4")],
        ),
        ({"listeners": "IN://:0,OUT://:0", **BOTH}, [("IN", ":0"), ("OUT", ":0")]),
        ({"listeners": "IN://127.0.0.1:1,OUT://[::1]:1", **BOTH}, [("IN", "127.0.0.1:1"), ("OUT", "[::1]:1")]),
    ],
)
def test_several_listeners_each_have_an_address(keys: dict[str, str], told: list[tuple[str, str]]) -> None:
    doors = kafka_listeners(keys).doors
    assert [(each.name, str(each.told)) for each in doors] == told
    assert {each.front for each in doors} == {"kafka"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"listeners": ":1"}, "listeners: expected NAME://HOST:PORT, not ':1'"),
        ({"listeners": "PLAINTEXT://b"}, "listeners: expected HOST:PORT, not 'b'"),
        ({"listeners": ""}, "listeners must name a listener for clients"),
        ({"listeners": "IN://:1,in://:2", **BOTH}, "listeners: the listener IN stands there twice"),
        ({"listeners": "IN://:1,OUT://h:1", **BOTH}, "listeners: IN and OUT have the same port, 1"),
        (
            {"listeners": "IN://:1,OUT://:2", "advertised.listeners": "IN://b:1", **BOTH},
            "advertised.listeners must have an entry for the listener OUT",
        ),
        (
            {"listeners": "IN://:1", "advertised.listeners": "IN://b:1,OUT://b:2", **BOTH},
            "advertised.listeners: there is no listener OUT in listeners",
        ),
        (
            {"listeners": "WEB://:1", MAP: "WEB:SSL"},
            "listeners: WEB is the name of a door for other clients",
        ),
        (
            {"listeners": "IN://:1", MAP: "IN:SASL_TLS"},
            "listener.security.protocol.map: expected NAME:PROTOCOL with PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, not "
            "'IN:SASL_TLS'; did you mean SASL_SSL?",
        ),
        (
            {"listeners": "PLAINTEXT://:1", "inter.broker.listener.name": "PLAINTEXT"},
            "inter.broker.listener.name: there is no other broker that a listener could be for; leave it out",
        ),
        (
            {"listeners": "IN://:1", MAP: "IN:SASL_PLAINTEXT,IN:PLAINTEXT"},
            "listener.security.protocol.map: IN stands there as SASL_PLAINTEXT, too",
        ),
        (
            {"listeners": "IN://:1"},
            "listeners: which security protocol the listener IN has, listener.security.protocol.map must say",
        ),
        (
            {"listeners": "PLAINTEXT://:1", "advertised.listeners": "OUT://b:1"},
            "advertised.listeners must have an entry for the listener PLAINTEXT",
        ),
    ],
)
def test_what_cannot_be_served_is_refused(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        kafka_listeners(keys)
    assert str(error.value) == message
