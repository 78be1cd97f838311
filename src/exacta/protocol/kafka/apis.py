"""The APIs that the codec knows, by key.

Owns the list of keys, and the map from a key to its message classes. The messages' modules are imported at first use: a
starting broker, or a Spark worker, loads only the messages that it meets. The handlers decide which APIs and versions a
broker offers.
"""

import importlib
from collections.abc import Mapping
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType
from typing import Final

from exacta.protocol.kafka.schema import Message, VersionRange


class ApiKey(IntEnum):
    """The first field of every request: the one list of APIs. All other names of an API are made from the name here."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    END_TRANSACTIONS = 17784
    RESET_SUBSCRIPTION = 17788
    ABORT_HANDLES = 17789
    JOIN_TRANSACTION = 17790
    ACKNOWLEDGE_MESSAGES = 17791
    ASK = 17792
    MOVE_LEAD = 17793


def _camel_case(name: str) -> str:
    """Return Kafka's spelling of a name: LIST_OFFSETS becomes ListOffsets."""
    return "".join(map(str.capitalize, name.split("_")))


class Api:
    """One API: its key and name, and lazily the classes of its request and response."""

    def __init__(self, key: ApiKey, name: str) -> None:
        self.key: Final = key
        self.name: Final = name

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.name})"

    @cached_property
    def request(self) -> type[Message]:
        """The class of the request's body."""
        return self._class("Request")

    @cached_property
    def response(self) -> type[Message]:
        """The class of the response's body."""
        return self._class("Response")

    @property
    def versions(self) -> VersionRange:
        """The versions that the codec knows, which may be more than a broker serves."""
        return self.request.SCHEMA.versions

    @property
    def module(self) -> str:
        """The full name of the module that holds the messages."""
        return f"exacta.protocol.kafka.messages.k{self.key:02d}_{self.key.name.lower()}"

    def _class(self, kind: str) -> type[Message]:
        found: type[Message] = getattr(importlib.import_module(self.module), self.name + kind)
        return found


OUR_OWN: Final = frozenset(
    {
        ApiKey.END_TRANSACTIONS,
        ApiKey.RESET_SUBSCRIPTION,
        ApiKey.ABORT_HANDLES,
        ApiKey.JOIN_TRANSACTION,
        ApiKey.ACKNOWLEDGE_MESSAGES,
        ApiKey.ASK,
        ApiKey.MOVE_LEAD,
    }
)
"""The keys that no Kafka has."""

API: Final[Mapping[int, Api]] = MappingProxyType({int(key): Api(key, _camel_case(key.name)) for key in ApiKey})
