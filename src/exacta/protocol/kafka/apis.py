"""The APIs that the codec knows, by key.

Owns the map from a key to its message classes. Their modules are imported at first use: a starting broker, or a Spark
worker, loads only the messages that it meets. Which APIs and versions a broker offers is not decided here.
"""

import importlib
import re
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Final

from exacta.protocol.kafka.schema import Message, VersionRange

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Api:
    """One API: its key and name, and lazily the classes of its request and response."""

    def __init__(self, key: int, name: str) -> None:
        self.key: Final = key
        self.name: Final = name

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.name})"

    @cached_property
    def request(self) -> type[Message]:
        """Class of the request's body."""
        return self._class("Request")

    @cached_property
    def response(self) -> type[Message]:
        """Class of the response's body."""
        return self._class("Response")

    @property
    def versions(self) -> VersionRange:
        """The versions that the codec knows, which may be more than a broker serves."""
        return self.request.SCHEMA.versions

    @property
    def latest_version(self) -> int:
        """The newest version that the codec knows."""
        return self.versions.last

    @property
    def module(self) -> str:
        """Full name of the module that holds the messages."""
        return f"exacta.protocol.kafka.messages.k{self.key:02d}_{_WORD.sub('_', self.name).lower()}"

    def _class(self, kind: str) -> type[Message]:
        found: type[Message] = getattr(importlib.import_module(self.module), self.name + kind)
        return found


_NAMES = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    50: "DescribeUserScramCredentials",
    57: "UpdateFeatures",
    60: "DescribeCluster",
    61: "DescribeProducers",
    65: "DescribeTransactions",
    66: "ListTransactions",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    74: "ListConfigResources",
    75: "DescribeTopicPartitions",
    17784: "EndTransactions",
    17785: "DescribeLag",
    17786: "ExplainTransactions",
}

OUR_OWN: Final = frozenset({17784, 17785, 17786})
"""The keys that no Kafka has."""

API: Final[Mapping[int, Api]] = MappingProxyType({key: Api(key, name) for key, name in _NAMES.items()})
