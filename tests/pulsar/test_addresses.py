"""The URLs that Pulsar's clients are told, by the doors of the server."""

import pytest

from exacta.front.doors import Door, Endpoint
from exacta.pulsar.addresses import Urls, addresses_at
from exacta.server.door_options import doors_of

PLAIN = {"pulsar_listen": Endpoint("", 6650), "web_listen": Endpoint("127.0.0.1", 8080)}
TLS = {"pulsar_tls_listen": Endpoint("", 6651), "pulsar_tls_advertise": Endpoint("b", 1)}
WEB_TLS = {"web_tls_listen": Endpoint("", 8443)}


def told(endpoints: dict[str, Endpoint], *more: Door) -> Urls:
    doors = [*doors_of(endpoints), *more]
    by_front = {name: [each for each in doors if each.front == name] for name in ("pulsar", "web")}
    return addresses_at(by_front["pulsar"], by_front["web"]).urls("10.0.0.2")


@pytest.mark.parametrize(
    ("endpoints", "urls"),
    [
        (PLAIN, Urls(broker="pulsar://10.0.0.2:6650", web="http://10.0.0.2:8080")),
        (TLS | WEB_TLS, Urls(broker_tls="pulsar+ssl://b:1", web_tls="https://b:8443")),
        (
            PLAIN | TLS | WEB_TLS,
            Urls(
                broker="pulsar://10.0.0.2:6650",
                broker_tls="pulsar+ssl://b:1",
                web="http://10.0.0.2:8080",
                web_tls="https://b:8443",
            ),
        ),
        (
            {"pulsar_listen": Endpoint("::1", 1)} | WEB_TLS,
            Urls(broker="pulsar://[::1]:1", web_tls="https://[::1]:8443"),
        ),
    ],
)
def test_the_web_front_is_found_by_the_name_of_the_broker(endpoints: dict[str, Endpoint], urls: Urls) -> None:
    assert told(endpoints) == urls


def test_the_first_door_of_a_kind_counts() -> None:
    second = Door(front="pulsar", name="SECOND", endpoint=Endpoint("second", 7))
    assert told(PLAIN, second) == told(PLAIN)
