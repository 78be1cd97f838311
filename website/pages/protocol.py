"""The page of what is served of Kafka's protocol, made from the handlers.

It owns the form of `docs/reference/protocol.md`, and the reasons why an API is not served. The
handlers' modules say what is served, and why no newer version is.
"""

from collections.abc import Sequence

from exacta.kafka.handler import Handler
from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import OUR_OWN
from website.pages.markdown import table

UNSERVED: dict[str, dict[int, str]] = {
    "Nobody here takes clients' metrics; an Apache Kafka without such a receiver does not serve it either": {
        71: "GetTelemetrySubscriptions",
        72: "PushTelemetry",
    },
    "There are no delegation tokens: OAUTHBEARER is the better way": {
        38: "CreateDelegationToken",
        39: "RenewDelegationToken",
        40: "ExpireDelegationToken",
        41: "DescribeDelegationToken",
    },
    "No broker replicates from another one: there is nothing to elect or move": {
        34: "AlterReplicaLogDirs",
        52: "Vote",
        53: "BeginQuorumEpoch",
        54: "EndQuorumEpoch",
        55: "DescribeQuorum",
        56: "AlterPartition",
        58: "Envelope",
        59: "FetchSnapshot",
        62: "BrokerRegistration",
        63: "BrokerHeartbeat",
        64: "UnregisterBroker",
        67: "AllocateProducerIds",
        70: "ControllerRegistration",
        73: "AssignReplicasToDirs",
        80: "AddRaftVoter",
        81: "RemoveRaftVoter",
        82: "UpdateRaftVoter",
        94: "UnregisterController",
    },
    "Share groups (KIP-932) and streams groups (KIP-1071) are not offered": {
        76: "ShareGroupHeartbeat",
        77: "ShareGroupDescribe",
        78: "ShareFetch",
        79: "ShareAcknowledge",
        83: "InitializeShareGroupState",
        84: "ReadShareGroupState",
        85: "WriteShareGroupState",
        86: "DeleteShareGroupState",
        87: "ReadShareGroupStateSummary",
        88: "StreamsGroupHeartbeat",
        89: "StreamsGroupDescribe",
        90: "DescribeShareGroupOffsets",
        91: "AlterShareGroupOffsets",
        92: "DeleteShareGroupOffsets",
        93: "StreamsGroupTopologyDescriptionUpdate",
    },
}
"""The APIs that are not served, by the reason: their names by their keys."""

_HEAD = """# What is served of Kafka's protocol

These are the APIs of Kafka's protocol that Kafka clients can use, in these versions. A request of another API, or in
another version, closes the connection, as it does with Apache Kafka. A client learns the versions by ApiVersions before
it sends one. [The differences](../../tests/differential/differences.py) that the differential test allows are what
Exacta answers otherwise than Apache Kafka 4.4, each with its reason."""


_COLUMNS = ("API", "Versions", "Newer versions", "Key", "Since Exacta")


def page() -> str:
    """Return the page."""
    served = [handler for key, handler in sorted(HANDLERS.items()) if key not in OUR_OWN]
    parts = [_HEAD, "## Served", table(_COLUMNS, map(_row, served)), "## Not served"]
    unserved = [(why, ", ".join(f"{name} ({key})" for key, name in apis.items())) for why, apis in UNSERVED.items()]
    parts += [
        table(("Why", "APIs"), unserved),
        "Requests of our own, which Kafka does not have: [EndTransactions](end-transactions.md), "
        "[Ask](ask.md), "
        "[ResetSubscription](reset-subscription.md), "
        "[AbortHandles](abort-handles.md), [JoinTransaction](join-transaction.md), "
        "[AcknowledgeMessages](acknowledge-messages.md), "
        "[MoveLead](move-lead.md).",
    ]
    return "\n\n".join(parts) + "\n"


def _row(handler: Handler) -> Sequence[str]:
    versions = f"{handler.min_version} – {handler.max_version}"
    return handler.name, versions, handler.newer or "–", str(handler.key), handler.since
