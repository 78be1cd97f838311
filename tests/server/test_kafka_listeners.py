"""Kafka's keys about listeners: which endpoint they come to, and which are refused."""

import pytest

from exacta.config.configuration import ConfigurationError
from exacta.front.doors import Endpoint
from exacta.server.kafka_listeners import KafkaListeners, kafka_listeners

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
    assert kafka_listeners(keys) == KafkaListeners(listen, advertise)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"listeners": ":1"}, "listeners: expected NAME://HOST:PORT, not ':1'"),
        ({"listeners": "PLAINTEXT://b"}, "listeners: expected HOST:PORT, not 'b'"),
        ({"listeners": ""}, "listeners must name one listener for clients, not none"),
        (
            {"listeners": "IN://:1,OUT://:2", MAP: "IN:PLAINTEXT,OUT:PLAINTEXT"},
            "listeners must name one listener for clients, not IN and OUT",
        ),
        (
            {"listeners": "SASL_SSL://:1"},
            "listeners: the listener SASL_SSL is to speak SASL_SSL, and Kafka's clients are served by PLAINTEXT only",
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
