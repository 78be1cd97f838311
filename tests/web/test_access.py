"""Every route that is mounted and not one of Pulsar's is in the table of `web/access.py`, and is refused as it says."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Route

import exacta
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.ports.authorizer import CLUSTER, Operation, Principal, Resource
from exacta.pulsar.rest.application import ROUTES
from exacta.server.web_front import WebFront
from tests.docstring_tables import docstring_table

RIGHTS = {
    path.strip("`"): right for path, right in docstring_table("exacta.web.access", "path").column("right").items()
}
NEEDS_DESCRIBE = [path for path, right in RIGHTS.items() if right.startswith("`Describe`")]
ANSWERS_ALL = sorted(RIGHTS.keys() - set(NEEDS_DESCRIBE))


class Only:
    """Allows this alone."""

    allows_all = False
    terms = None

    def __init__(self, *allowed: tuple[Operation, Resource]) -> None:
        self._allowed = allowed

    def allows(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> bool:
        """See `Authorizer`."""
        return (operation, resource) in self._allowed


EVERY_OTHER = [(each, CLUSTER) for each in Operation if each is not Operation.DESCRIBE]


@pytest.fixture(scope="module")
def broker() -> Iterator[exacta.Broker]:
    with exacta.Broker(pulsar=True, authorizer_class_name=STANDARD_AUTHORIZER) as started:
        yield started


def front(broker: exacta.Broker) -> WebFront:
    server = broker._server
    assert server is not None
    return server.reception._early["web"]  # type: ignore[return-value]


def allow(broker: exacta.Broker, *allowed: tuple[Operation, Resource]) -> None:
    served = front(broker)._access.broker
    assert served is not None
    served.authorizer = Only(*allowed)


def get(broker: exacta.Broker, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{broker.web_url}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_every_route_that_is_mounted_is_in_a_table(broker: exacta.Broker) -> None:
    mounted = front(broker)._application._serves.routes
    assert all(isinstance(each, Route) for each in mounted), "a mount would hide its routes"
    pulsars = {(each.path, each.method) for each in ROUTES}
    others: set[tuple[Any, ...]] = set()
    for each in mounted:
        assert isinstance(each, Route)
        assert each.methods
        others |= {(each.path, method) for method in each.methods if (each.path, method) not in pulsars}
    # Starlette answers HEAD where GET is: by the same endpoint, and so after the same question.
    assert {method for _, method in others} == {"GET", "HEAD"}
    assert {path for path, method in others if method == "GET"} == RIGHTS.keys()
    assert {path for path, method in others if method == "HEAD"} - RIGHTS.keys() <= {path for path, _ in pulsars}


@pytest.mark.parametrize("path", NEEDS_DESCRIBE)
def test_who_may_not_describe_the_cluster_is_refused(broker: exacta.Broker, path: str) -> None:
    allow(broker)
    assert get(broker, path) == (403, '{"reason":"the client has no right to Describe on the cluster"}')
    allow(broker, *EVERY_OTHER)
    assert get(broker, path)[0] == 403
    allow(broker, (Operation.DESCRIBE, CLUSTER))
    assert get(broker, path)[0] == 200


@pytest.mark.parametrize("path", ANSWERS_ALL)
def test_live_and_ready_answer_everybody_without_details(broker: exacta.Broker, path: str) -> None:
    allow(broker, *EVERY_OTHER)
    status = path.rpartition("/")[2]
    assert get(broker, path) == (200, f'{{"status":"{status}"}}')


def test_details_of_the_health_are_for_who_may_describe_the_cluster(broker: exacta.Broker) -> None:
    allow(broker, (Operation.DESCRIBE, CLUSTER))
    assert '"disk":' in get(broker, "/health/ready")[1]
