"""The address that a client is told at a door."""

import pytest

from exacta.front.doors import Door, Endpoint

HERE = "10.0.0.2"
"""The address of the machine that the client has connected to."""


@pytest.mark.parametrize(
    ("listen", "advertised", "told"),
    [
        (Endpoint("a", 1), None, Endpoint("a", 1)),
        (Endpoint("", 1), None, Endpoint(HERE, 1)),
        (Endpoint("::", 1), None, Endpoint(HERE, 1)),
        (Endpoint("", 1), Endpoint("b", 2), Endpoint("b", 2)),
        (Endpoint("a", 1), Endpoint("0.0.0.0", 2), Endpoint(HERE, 2)),
        (Endpoint("a", 1), Endpoint("b", 0), Endpoint("b", 1)),
    ],
)
def test_clients_are_told_the_advertised_host_or_the_one_that_they_have_reached(
    listen: Endpoint, advertised: Endpoint | None, told: Endpoint
) -> None:
    door = Door(front="f", name="n", endpoint=listen, advertised=advertised)
    assert door.endpoint_for(HERE) == told
