"""The lists that Pulsar's tools look at first: clusters, tenants, namespaces, topics, and the broker that serves them.

There is one cluster, of one broker. Tenants and namespaces are parts of the names of topics (decision 0032): those are
listed in which topics lie, and the two that every Apache Pulsar has. Nothing has to be created before it is used, so
that one which is asked for by its name is there. Topics are listed as `namespaces.py` lists them.
"""

from collections.abc import Callable, Iterable

from starlette.responses import PlainTextResponse

from exacta.core.state.state import State
from exacta.core.state.topic import Topic
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.front.broker import Broker
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar.topic_names import DEFAULT_NAMESPACE, DEFAULT_TENANT, PERSISTENT
from exacta.pulsar.needs import allows
from exacta.pulsar.rest.namespaces import CLUSTER, answer_list
from exacta.pulsar.rest.request import NOT_FOUND, RestRequest
from exacta.pulsar.topic_names import COORDINATOR, names_in, pulsar_name
from exacta.release import release


def clusters(broker: Broker, request: RestRequest) -> None:
    """List the one cluster."""
    request.reply_json([CLUSTER])


def cluster(broker: Broker, request: RestRequest) -> None:
    """Say where the cluster is reached."""
    if request.http.path_params["cluster"] != CLUSTER:
        request.refuse_with(NOT_FOUND, "Cluster does not exist")
        return
    urls = request.shared.addresses.urls(request.local_host)
    told = {
        "serviceUrl": urls.web,
        "serviceUrlTls": urls.web_tls,
        "brokerServiceUrl": urls.broker,
        "brokerServiceUrlTls": urls.broker_tls,
    }
    request.reply_json({name: url for name, url in told.items() if url})


def brokers(broker: Broker, request: RestRequest) -> None:
    """List the one broker by the address of its web interface."""
    urls = request.shared.addresses.urls(request.local_host)
    request.reply_json([(urls.web or urls.web_tls).partition("://")[2]])


def version(broker: Broker, request: RestRequest) -> None:
    """Tell Exacta's own version: it is not Apache Pulsar's."""
    request.reply(PlainTextResponse(f"exacta-{release()}"))


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
    def view(state: State, now_ms: int) -> list[str]:
        names = (pulsar_name(topic) for topic in _visible(broker, request, state))
        pairs = {(each.tenant, each.namespace) for each in names}
        pairs |= {(DEFAULT_TENANT, DEFAULT_NAMESPACE), (COORDINATOR.tenant, COORDINATOR.namespace)}
        return sorted(names_of(pairs))

    broker.read(request, view, lambda names: answer_list(request, names))


def partitioned(broker: Broker, request: RestRequest) -> None:
    """List the topics of a namespace that have several partitions, by their own names."""
    names = request.http.path_params

    def view(state: State, now_ms: int) -> list[str]:
        visible = _visible(broker, request, state)
        found = names_in(names["tenant"], names["namespace"], visible)
        return sorted(
            f"{PERSISTENT}://{names['tenant']}/{names['namespace']}/{local_name}"
            for topic, local_name in found
            if _is_partitioned(state.topics[topic])
        )

    broker.read(request, view, lambda found: answer_list(request, found))


def none(broker: Broker, request: RestRequest) -> None:
    """List the topics that are not kept: there are none."""
    request.reply_json([])


def _is_partitioned(topic: Topic) -> bool:
    return topic.partition_count > 1


def _visible(broker: Broker, request: RestRequest, state: State) -> Iterable[str]:
    """Yield the topics of the log that are not the cluster's own, and that the client may see."""
    kept = (topic for topic in state.topics if topic not in INTERNAL_TOPICS)
    if broker.authorizer.allows_all:
        return kept
    return (topic for topic in kept if allows(broker, request, Operation.DESCRIBE, topic))
