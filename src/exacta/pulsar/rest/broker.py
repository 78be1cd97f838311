"""The brokers and their cluster, as Pulsar's tools and HTTP look-ups ask for them: addresses, version, health."""

from typing import Final

from starlette.responses import PlainTextResponse, Response

from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.pulsar.at_follower import NO_LEADER
from exacta.pulsar.rest.request import NOT_FOUND, RestRequest
from exacta.pulsar.topics import read_topic
from exacta.release import release

CLUSTER: Final = "standalone"
"""The name of the one cluster, which Apache Pulsar gives to a single broker; tools wait for it by its name."""


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
    """List the brokers that live, by the addresses of their web interfaces."""
    own, addresses, cluster = (
        request.shared.addresses.urls(request.local_host),
        request.shared.addresses,
        broker.cluster,
    )
    found = [own if node.node_id == cluster.node_id else addresses.urls_of(node) for node in cluster.nodes]
    request.reply_json([(urls.web or urls.web_tls).partition("://")[2] for urls in found if urls.web or urls.web_tls])


def version(broker: Broker, request: RestRequest) -> None:
    """Tell Exacta's own version: it is not Apache Pulsar's."""
    request.reply(PlainTextResponse(f"exacta-{release()}"))


def health(broker: Broker, request: RestRequest) -> None:
    """Answer once all that was decided before is durable: a journal that hangs, or has failed, lets nobody answer."""
    broker.when_durable(request, lambda: request.reply(Response(b"ok", media_type="application/json")))


def lookup(broker: Broker, request: RestRequest) -> None:
    """Tell at once which broker serves a topic: the one that leads the log serves all.

    Clients that open something on the topic are told whether it is there.
    """
    if read_topic(request, request.topic) is None:
        return
    urls = request.shared.leader_urls(request.local_host)
    if urls is None:
        request.refuse(ServerError.ServiceNotReady, NO_LEADER)
        return
    answer = {
        "brokerUrl": urls.broker,
        "brokerUrlTls": urls.broker_tls,
        "httpUrl": urls.web,
        "httpUrlTls": urls.web_tls,
        "nativeUrl": urls.broker or urls.broker_tls,
    }
    # The last one is there even if it is empty; it has the same meaning for older clients.
    request.reply_json({name: url for name, url in answer.items() if url} | {"brokerUrlSsl": urls.broker_tls})
