"""Look at a cluster as a whole: its brokers, what they speak, and whether they are there yet.

This module owns what is made of Metadata and ApiVersions for an administrator. `routing.py` asks both for itself.
"""

from collections.abc import Sequence
from typing import NamedTuple

from exacta.client.apis import call_of
from exacta.client.deadline import Backoff, Deadline
from exacta.client.errors import ClientError, ConnectionLost, ErrorClass, KafkaError
from exacta.client.routing import Anyone, Client, Node, UnknownTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from exacta.protocol.kafka.messages.k17784_end_transactions import EndTransactionsRequest


class Broker(NamedTuple):
    """A broker, and the address that it is known by."""

    broker: int
    host: str
    port: int
    rack: str | None


class ClusterDescription(NamedTuple):
    """A cluster, with its brokers in the order of their ids."""

    cluster_id: str | None
    controller: int | None
    brokers: tuple[Broker, ...]


class BrokerVersion(NamedTuple):
    """The APIs and features of a broker. `features` are those that the cluster has agreed on, with their levels."""

    broker: int
    is_exacta: bool
    apis: int
    features: dict[str, int]


def describe_cluster(client: Client, deadline: Deadline | None = None) -> ClusterDescription:
    """Return the brokers of a cluster."""
    reply = client.call(
        Anyone(),
        MetadataRequest(topics=[], allow_auto_topic_creation=False),
        what="looking up the brokers",
        codes=lambda reply: (),
        deadline=deadline,
    )
    brokers = sorted(Broker(each.node_id, each.host, each.port, each.rack) for each in reply.brokers)
    controller = reply.controller_id if reply.controller_id >= 0 else None
    return ClusterDescription(reply.cluster_id, controller, tuple(brokers))


def describe_versions(client: Client) -> list[BrokerVersion]:
    """Return what each broker speaks, by their ids."""
    found = []
    for broker in client.nodes():
        reply = client.call(
            Node(broker),
            ApiVersionsRequest(client_software_name="exacta", client_software_version="1"),
            what=f"asking broker {broker} what it speaks",
            codes=lambda reply: (reply.error_code,),
        )
        keys = {each.api_key for each in reply.api_keys}
        features = {each.name: each.max_version_level for each in reply.finalized_features}
        is_exacta = call_of(EndTransactionsRequest()).key in keys
        found.append(BrokerVersion(broker, is_exacta, len(keys), dict(sorted(features.items()))))
    return found


def wait_for_cluster(client: Client, *, brokers: int = 1, topics: Sequence[str] = ()) -> None:
    """Return when this many brokers are there and each of the topics has its leaders; raises `DeadlineExceeded`."""
    deadline = client.deadline()
    backoff = Backoff()
    while True:
        try:
            there = len(describe_cluster(client, deadline).brokers)
            if there >= brokers:
                client.partitions(topics, deadline=deadline)
                return
            missing: ClientError = ConnectionLost(f"{there} of {brokers} brokers are there")
        except UnknownTopic as error:
            missing = error
        except KafkaError as error:
            if error.error_class is not ErrorClass.RETRIABLE:
                raise
            missing = error
        backoff.wait(deadline, missing)
