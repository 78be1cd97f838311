"""The table of the routes; the web front serves them (`exacta.web.application`).

What is not in the table is not found: a path of Apache Pulsar's that is not served, and the name of a topic with a
slash in it (`%2F`), which is none here.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from msgspec import Struct
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from exacta.front.broker import Broker
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.pulsar.at_follower import NO_LEADER
from exacta.pulsar.needs import OPEN_TO_ALL, Need, Needs, lacking, the_cluster, the_topic
from exacta.pulsar.rest import broker, namespaces, partitions, properties, topics, transactions
from exacta.pulsar.rest.broker import CLUSTER
from exacta.pulsar.rest.request import RestRequest
from exacta.pulsar.shared import PulsarShared
from exacta.web.answers import json_answer
from exacta.web.requests import Unread, read_body

TEMPORARY_REDIRECT = 307

Handle: TypeAlias = Callable[[Broker, RestRequest], None]

_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
_KEPT = "persistent/{tenant}/{namespace}"
_TOPICS = f"/admin/v2/{_KEPT}"
_TOPIC = f"{_TOPICS}/{{topic}}"


class Served(Struct, frozen=True):
    """One method on one path."""

    method: str
    path: str
    handle: Handle
    needs: Needs[RestRequest]
    """The operations on resources that a request needs of its client."""


def _on_topic(operation: Operation) -> Needs[RestRequest]:
    return (Need(operation, the_topic),)


_CREATES: Needs[RestRequest] = (Need(Operation.CREATE, the_topic, or_on_cluster=True),)
_ADMINISTERS: Needs[RestRequest] = (Need(Operation.ALTER, the_cluster, ResourceKind.CLUSTER),)


ROUTES: Sequence[Served] = (
    Served(
        "GET",
        "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}",
        broker.lookup,
        _on_topic(Operation.DESCRIBE),
    ),
    Served("GET", f"{_TOPIC}/partitions", partitions.get, _on_topic(Operation.DESCRIBE)),
    Served("PUT", f"{_TOPIC}/partitions", partitions.create, _CREATES),
    Served("POST", f"{_TOPIC}/partitions", partitions.extend, _on_topic(Operation.ALTER)),
    Served("DELETE", f"{_TOPIC}/partitions", partitions.delete_all, _on_topic(Operation.DELETE)),
    Served("PUT", _TOPIC, topics.create, _CREATES),
    Served("DELETE", _TOPIC, topics.delete_one, _on_topic(Operation.DELETE)),
    Served("GET", f"{_TOPIC}/properties", properties.get, _on_topic(Operation.DESCRIBE_CONFIGS)),
    Served("PUT", f"{_TOPIC}/properties", properties.update, _on_topic(Operation.ALTER_CONFIGS)),
    Served("DELETE", f"{_TOPIC}/properties", properties.remove, _on_topic(Operation.ALTER_CONFIGS)),
    Served("GET", f"{_NAMESPACE}/topics", namespaces.topics, OPEN_TO_ALL),
    Served("PUT", _NAMESPACE, namespaces.create, _ADMINISTERS),
    Served("DELETE", _NAMESPACE, namespaces.delete, _ADMINISTERS),
    Served(
        "GET",
        "/admin/v3/transactions/transactionMetadata/{most}/{least}",
        transactions.metadata,
        OPEN_TO_ALL,
    ),
    Served("GET", "/admin/v2/clusters", broker.clusters, OPEN_TO_ALL),
    Served("GET", "/admin/v2/clusters/{cluster}", broker.cluster, OPEN_TO_ALL),
    Served("GET", "/admin/v2/tenants", namespaces.tenants, OPEN_TO_ALL),
    Served("GET", "/admin/v2/tenants/{tenant}", namespaces.tenant, OPEN_TO_ALL),
    Served("GET", "/admin/v2/namespaces/{tenant}", namespaces.namespaces, OPEN_TO_ALL),
    Served("GET", _NAMESPACE, namespaces.policies, OPEN_TO_ALL),
    Served("GET", f"{_NAMESPACE}/deduplication", namespaces.deduplication, OPEN_TO_ALL),
    Served("GET", f"{_TOPIC}/deduplicationEnabled", namespaces.deduplication, _on_topic(Operation.DESCRIBE_CONFIGS)),
    Served("GET", f"{_TOPICS}/partitioned", namespaces.partitioned, OPEN_TO_ALL),
    Served("GET", _TOPICS, namespaces.topics, OPEN_TO_ALL),
    Served("GET", f"/admin/v2/non-{_KEPT}/partitioned", namespaces.none, OPEN_TO_ALL),
    Served("GET", f"/admin/v2/non-{_KEPT}", namespaces.none, OPEN_TO_ALL),
    Served("GET", "/admin/v2/brokers", broker.brokers, OPEN_TO_ALL),
    Served("GET", "/admin/v2/brokers/version", broker.version, OPEN_TO_ALL),
    Served("GET", f"/admin/v2/brokers/{CLUSTER}", broker.brokers, OPEN_TO_ALL),
    Served("GET", "/admin/v2/brokers/health", broker.health, OPEN_TO_ALL),
    Served("GET", "/admin/v2/brokers/ready", broker.health, OPEN_TO_ALL),
    Served("GET", "/status.html", broker.health, OPEN_TO_ALL),
)


def routes(shared: PulsarShared) -> list[Route]:
    """Return all routes."""
    return [Route(each.path, _endpoint(shared, each), methods=[each.method]) for each in ROUTES]


def _endpoint(shared: PulsarShared, served: Served) -> Callable[[HttpRequest], Awaitable[Response]]:
    async def endpoint(http: HttpRequest) -> Response:
        if not _is_text(http):
            return json_answer(400, {"reason": "the path, or the query, is no UTF-8"})
        try:
            body = await read_body(http)
        except Unread as unread:
            return unread.answer
        request = RestRequest(http, body, shared)
        if shared.broker.cluster.leads or served.handle is broker.lookup:
            _serve(shared, served, request)
        elif served.method == "GET":
            shared.broker.catch_up(request, lambda: _serve(shared, served, request))
        else:
            _send_on(shared, request)
        return await request.answer()

    return endpoint


def _serve(shared: PulsarShared, served: Served, request: RestRequest) -> None:
    lack = lacking(shared.broker, request, served.needs, request)
    if lack is not None:
        request.refuse(ServerError.AuthorizationError, lack)
    else:
        served.handle(shared.broker, request)


def _send_on(shared: PulsarShared, request: RestRequest) -> None:
    """Send a client that wants something changed to the broker that leads, as Apache Pulsar does to the owner."""
    urls, http = shared.leader_urls(request.local_host), request.http.url
    leader = None if urls is None else (urls.web_tls or urls.web if http.scheme == "https" else urls.web)
    if not leader:
        request.refuse(ServerError.ServiceNotReady, NO_LEADER)
        return
    path = request.http.scope["raw_path"].decode("ascii")
    request.reply(
        Response(
            status_code=TEMPORARY_REDIRECT,
            headers={"location": f"{leader}{path}" + (f"?{http.query}" if http.query else "")},
        )
    )


def _is_text(http: HttpRequest) -> bool:
    """Return whether the path and the query are UTF-8: they would be read as other names and values otherwise."""
    try:
        for raw in (http.scope["raw_path"], http.scope["query_string"]):
            unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return False
    return True
