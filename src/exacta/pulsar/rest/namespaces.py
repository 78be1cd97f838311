"""Tenants and namespaces: their topics are listed, and the rest is courtesy.

Both are parts of the names of topics (decision 0032), and nothing is kept of them. Those are listed in which topics
lie, and the two that every Apache Pulsar has. Nothing has to be created before it is used, so that one which is asked
for by its name is there. A client that creates a namespace is told that it is there, and policies that hold anyway may
come with it. Other policies are refused, since nobody would keep them.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import json

from exacta.core.queries.topic_lists import ordinary_partition_counts, ordinary_topics
from exacta.front.broker import Broker
from exacta.front.untrusted_json import NoJson, decode_json
from exacta.protocol.pulsar.topic_names import DEFAULT_NAMESPACE, DEFAULT_TENANT, PERSISTENT
from exacta.pulsar.rest.broker import CLUSTER
from exacta.pulsar.rest.request import CONFLICT, NOT_ACCEPTABLE, NOT_IMPLEMENTED, RestRequest
from exacta.pulsar.topic_lists import topics_of, visible
from exacta.pulsar.topic_names import COORDINATOR, names_in, pulsar_name
from exacta.web.answers import json_answer

_POLICIES: json.Decoder[dict[str, object] | None] = json.Decoder(dict[str, object] | None)

HOLD_ANYWAY: Final = frozenset({"auth_policies", "replication_clusters"})
"""Everybody may do everything until there are logins, and there is one cluster."""

MOST_LIST_BYTES: Final = 1 << 20
"""The most that one list may take: 256 connections whose clients do not take theirs hold 256 MiB."""


def topics(broker: Broker, request: RestRequest) -> None:
    """List the topics of a namespace; one without topics is empty, and one that nobody has named as well."""
    is_persistent = request.http.query_params.get("mode", "").upper() != "NON_PERSISTENT"

    _read(broker, request, lambda names: _answer_list(request, names if is_persistent else []))


def partitioned(broker: Broker, request: RestRequest) -> None:
    """List the topics of a namespace that have several partitions, by their own names."""
    names = request.http.path_params

    def answer(counts: dict[str, int]) -> None:
        several = (topic for topic in visible(broker, request, counts) if counts[topic] > 1)
        found = names_in(names["tenant"], names["namespace"], several)
        whole = f"{PERSISTENT}://{names['tenant']}/{names['namespace']}/"
        _answer_list(request, sorted(whole + local_name for _, local_name in found))

    broker.read(request, ordinary_partition_counts, answer)


def none(broker: Broker, request: RestRequest) -> None:
    """List the topics that are not kept: there are none."""
    request.reply_json([])


def tenants(broker: Broker, request: RestRequest) -> None:
    """List the tenants in which topics lie, and those that are always there."""
    _list_names(broker, request, lambda pairs: {tenant for tenant, _ in pairs})


def tenant(broker: Broker, request: RestRequest) -> None:
    """Describe a tenant: everybody may use it, in the one cluster."""
    request.reply_json({"adminRoles": [], "allowedClusters": [CLUSTER]})


def namespaces(broker: Broker, request: RestRequest) -> None:
    """List the namespaces of a tenant in which topics lie, and those that are always there."""
    wanted = request.http.path_params["tenant"]
    _list_names(broker, request, lambda pairs: {f"{tenant}/{name}" for tenant, name in pairs if tenant == wanted})


def _list_names(
    broker: Broker, request: RestRequest, names_of: Callable[[Iterable[tuple[str, str]]], set[str]]
) -> None:
    def answer(topics: list[str]) -> None:
        names = map(pulsar_name, visible(broker, request, topics))
        pairs = {(each.tenant, each.namespace) for each in names}
        pairs |= {(DEFAULT_TENANT, DEFAULT_NAMESPACE), (COORDINATOR.tenant, COORDINATOR.namespace)}
        _answer_list(request, sorted(names_of(pairs)))

    broker.read(request, ordinary_topics, answer)


def _answer_list(request: RestRequest, names: list[str]) -> None:
    """Answer with a list of names, unless it is too long."""
    response = json_answer(200, names)
    if len(response.body) > MOST_LIST_BYTES:
        text = f"{len(names)} names are too many for one answer: ask for topics by Pulsar's protocol"
        request.refuse_with(NOT_ACCEPTABLE, text)
    else:
        request.reply(response)


def policies(broker: Broker, request: RestRequest) -> None:
    """Tell the policies that hold in every namespace."""
    request.reply_json({"replication_clusters": [CLUSTER], "deduplicationEnabled": True})


def deduplication(broker: Broker, request: RestRequest) -> None:
    """Say that repeats of producers with names are dropped, in every namespace and topic."""
    request.reply_json(True)


def create(broker: Broker, request: RestRequest) -> None:
    """Say that a namespace is there now, unless topics lie in it already."""
    try:
        policies = decode_json(request.body or b"{}", _POLICIES) or {}
    except NoJson as error:
        request.refuse_with(400, f"the body must be the policies of a namespace: {error}")
        return
    others = sorted(name for name, value in policies.items() if value and name not in HOLD_ANYWAY)
    if others:
        request.refuse_with(NOT_IMPLEMENTED, f"namespaces have no policies: {', '.join(others)}")
        return
    _answer_if_empty(broker, request, "Namespace already exists")


def delete(broker: Broker, request: RestRequest) -> None:
    """Say that a namespace is gone, unless topics lie in it."""
    _answer_if_empty(broker, request, "Cannot delete non empty namespace")


def _answer_if_empty(broker: Broker, request: RestRequest, refusal: str) -> None:
    """Answer with nothing, or refuse the request if topics lie in the namespace."""

    def answer(names: list[str]) -> None:
        if names:
            request.refuse_with(CONFLICT, refusal)
        else:
            request.reply_nothing()

    _read(broker, request, answer)


def _read(broker: Broker, request: RestRequest, answer: Callable[[list[str]], None]) -> None:
    names = request.http.path_params

    def found(counts: dict[str, int]) -> None:
        answer(topics_of(broker, request, counts, names["tenant"], names["namespace"]))

    broker.read(request, ordinary_partition_counts, found)
