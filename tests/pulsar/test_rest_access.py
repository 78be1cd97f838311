"""Every route of the web interface with each right that it needs, and with each of them missing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import Struct

import exacta
from exacta.ports.authorizer import AllowAll, Operation, Principal, ResourceKind
from exacta.pulsar.rest.application import ROUTES
from tests.pulsar.access_cases import ADMINISTERS, Right, group, rules, topic
from tests.pulsar.web import Web
from tests.pulsar.wire import Wire

FORBIDDEN = 403
TOPICS = "/admin/v2/persistent/public/default"
NAMESPACE = "/admin/v2/namespaces/public/default"
TRANSACTION = "/admin/v3/transactions/transactionMetadata/0"


class World:
    """A broker with the topic `t`, which somebody else has written to in a transaction, and read from in it."""

    def __init__(self, broker: exacta.Broker) -> None:
        assert broker._server is not None
        assert broker._server._broker is not None
        self.broker = broker._server._broker
        self.web = Web(broker.web_url, broker.pulsar_url)
        self.wire = Wire(broker.pulsar_url)
        for each in broker._server._connections:
            if each.front == "pulsar":
                each.principal = Principal(name="bob")
        self.wire.open_producer("t")
        self.wire.subscribe("t", "bobs")
        self.wire.produce(b"x")
        self.wire.permit()
        message = self.wire.receive().message_id
        self.empty, self.bobs = (self.wire.begin().txnid_least_bits for _ in range(2))
        self.wire.produce(b"y", sequence=1, transaction=self.bobs)
        self.wire.acknowledge(message, transaction=self.bobs)

    def ask(self, rights: Any, method: str, path: str, body: str | None, media_type: str) -> tuple[int, Any]:
        self.broker.authorizer = rules(rights)
        try:
            return self.web.ask(method, path, body, media_type)
        finally:
            self.broker.authorizer = AllowAll()


class Case(Struct, frozen=True, kw_only=True):
    """A request for one route, and the rights that it needs."""

    method: str
    route: str
    path: Callable[[World], str]
    rights: tuple[Right, ...] = ()
    reason: str = ""
    """Why it needs none."""
    body: str | None = None
    media_type: str = "application/json"
    note: str = ""


def _case(method: str, route: str, path: str | Callable[[World], str], *rights: Right, **more: Any) -> Case:
    def found(world: World) -> str:
        return path if isinstance(path, str) else path(world)

    return Case(method=method, route=route, path=found, rights=rights, **more)


_TOPIC = "/admin/v2/persistent/{tenant}/{namespace}/{topic}"
_ONE = "/admin/v2/namespaces/{tenant}/{namespace}"
_KEPT = "/admin/v2/persistent/{tenant}/{namespace}"
_LOST = "/admin/v2/non-persistent/{tenant}/{namespace}"
_TXN = "/admin/v3/transactions/transactionMetadata/{most}/{least}"
SHOWN = "its answer leaves out what the client may not see"
CONSTANT = "its answer is the same in every broker, or is what Kafka's Metadata tells every client"
HEALTH = "it says whether the broker lives"
DESCRIBES_BOBS = (topic(Operation.DESCRIBE), (Operation.DESCRIBE, ResourceKind.GROUP, "bobs"))

CASES = [
    _case(
        "GET",
        "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}",
        "/lookup/v2/topic/persistent/public/default/t",
        topic(Operation.DESCRIBE),
    ),
    _case("GET", f"{_TOPIC}/partitions", f"{TOPICS}/t/partitions", topic(Operation.DESCRIBE)),
    _case(
        "PUT",
        f"{_TOPIC}/partitions",
        f"{TOPICS}/new/partitions",
        topic(Operation.CREATE, "new"),
        body="2",
    ),
    _case(
        "PUT",
        f"{_TOPIC}/partitions",
        f"{TOPICS}/new/partitions",
        (Operation.CREATE, ResourceKind.CLUSTER, "kafka-cluster"),
        body="2",
        note="by the cluster",
    ),
    _case("POST", f"{_TOPIC}/partitions", f"{TOPICS}/t/partitions", topic(Operation.ALTER), body="2"),
    _case("DELETE", f"{_TOPIC}/partitions", f"{TOPICS}/t/partitions", topic(Operation.DELETE)),
    _case("PUT", _TOPIC, f"{TOPICS}/new", topic(Operation.CREATE, "new")),
    _case("DELETE", _TOPIC, f"{TOPICS}/t", topic(Operation.DELETE)),
    _case("GET", f"{_TOPIC}/properties", f"{TOPICS}/t/properties", topic(Operation.DESCRIBE_CONFIGS)),
    _case("PUT", f"{_TOPIC}/properties", f"{TOPICS}/t/properties", topic(Operation.ALTER_CONFIGS), body="{}"),
    _case("DELETE", f"{_TOPIC}/properties", f"{TOPICS}/t/properties?key=x", topic(Operation.ALTER_CONFIGS)),
    _case(
        "GET",
        f"{_TOPIC}/deduplicationEnabled",
        f"{TOPICS}/t/deduplicationEnabled",
        topic(Operation.DESCRIBE_CONFIGS),
    ),
    # CVE-2026-105938: Apache Pulsar let such requests pass by a right on a subscription.
    _case("PUT", _ONE, "/admin/v2/namespaces/public/new", ADMINISTERS, body="{}"),
    _case("DELETE", _ONE, "/admin/v2/namespaces/public/new", ADMINISTERS),
    # CVE-2026-105931: Apache Pulsar showed transactions to every login.
    _case("GET", _TXN, lambda world: f"{TRANSACTION}/{world.bobs}", *DESCRIBES_BOBS),
    _case("GET", _TXN, lambda world: f"{TRANSACTION}/{world.empty}", ADMINISTERS, note="empty"),
    _case("GET", _TXN, f"{TRANSACTION}/999", reason="there is no such transaction", note="none"),
    *(
        _case("GET", route, path, reason=SHOWN)
        for route, path in [
            (f"{_ONE}/topics", f"{NAMESPACE}/topics"),
            ("/admin/v2/tenants", "/admin/v2/tenants"),
            ("/admin/v2/namespaces/{tenant}", "/admin/v2/namespaces/public"),
            (f"{_KEPT}/partitioned", f"{TOPICS}/partitioned"),
            (_KEPT, TOPICS),
            (f"{_LOST}/partitioned", "/admin/v2/non-persistent/public/default/partitioned"),
            (_LOST, "/admin/v2/non-persistent/public/default"),
        ]
    ),
    *(
        _case("GET", route, path, reason=CONSTANT)
        for route, path in [
            ("/admin/v2/clusters", "/admin/v2/clusters"),
            ("/admin/v2/clusters/{cluster}", "/admin/v2/clusters/standalone"),
            ("/admin/v2/tenants/{tenant}", "/admin/v2/tenants/public"),
            (_ONE, NAMESPACE),
            (f"{_ONE}/deduplication", f"{NAMESPACE}/deduplication"),
            ("/admin/v2/brokers", "/admin/v2/brokers"),
            ("/admin/v2/brokers/version", "/admin/v2/brokers/version"),
            ("/admin/v2/brokers/standalone", "/admin/v2/brokers/standalone"),
        ]
    ),
    *(
        _case("GET", path, path, reason=HEALTH)
        for path in ("/admin/v2/brokers/health", "/admin/v2/brokers/ready", "/status.html")
    ),
]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with exacta.Broker(pulsar=True) as broker:
        made = World(broker)
        yield made
        made.wire.close()


def ask(world: World, case: Case, rights: Any) -> tuple[int, Any]:
    return world.ask(rights, case.method, case.path(world), case.body, case.media_type)


def named(case: Case) -> str:
    return f"{case.method} {case.route} {case.note}".strip()


by_case = pytest.mark.parametrize("case", CASES, ids=named)


@by_case
def test_no_right_of_a_route_can_be_done_without(world: World, case: Case) -> None:
    """It comes first, since the other test changes the topics."""
    for missing in case.rights:
        others = [each for each in case.rights if each != missing]
        useless = [topic(Operation.READ), topic(Operation.WRITE), group("bobs")]
        status, answer = ask(world, case, [*others, *(each for each in useless if each != missing)])
        assert (status, "reason" in answer) == (FORBIDDEN, True)
    assert case.rights or case.reason


@by_case
def test_the_rights_of_a_route_are_enough(world: World, case: Case) -> None:
    status, answer = ask(world, case, case.rights)
    assert status not in (401, FORBIDDEN), answer


@pytest.mark.parametrize("case", [case for case in CASES if case.reason == SHOWN], ids=named)
def test_a_list_shows_nothing_to_a_stranger(world: World, case: Case) -> None:
    status, answer = ask(world, case, ())
    assert status == 200
    assert not [each for each in answer if each.endswith("/t")]


def test_every_route_has_a_case() -> None:
    assert {(case.method, case.route) for case in CASES} == {(each.method, each.path) for each in ROUTES}
