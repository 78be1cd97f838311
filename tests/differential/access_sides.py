"""Two brokers with the same users and rules: who has no right, one right alone, all but one, and all.

There is a user for each set of rights. What a right alone is good for is written for the names that a request has
(literal); who has all rights but one has them for all names that begin with `seen-`. Nobody has a right to a name that
begins with `hidden-`. A request names one of each.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec
from benchmarks.kafka.security import ACCOUNTS

from exacta.core.values.acl import CLUSTER_NAME, Operation, Pattern, ResourceKind
from exacta.protocol.kafka.acl_numbers import ANY, OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k03_metadata,
    k08_offset_commit,
    k10_find_coordinator,
    k15_describe_groups,
    k19_create_topics,
    k20_delete_topics,
    k22_init_producer_id,
    k29_describe_acls,
    k30_create_acls,
    k51_alter_user_scram_credentials,
)
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from exacta.protocol.sasl.scram import ALGORITHMS, salted_password
from exacta.protocol.sasl.scram_client import ScramClient
from tests.differential.side import PATIENCE_S
from tests.kafka import access_requests as requests
from tests.kafka.access_requests import Names
from tests.kafka.wire import Wire
from tests.waiting import wait_until

RIGHTS = {
    ResourceKind.TOPIC: "READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS",
    ResourceKind.GROUP: "READ DELETE DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS",
    ResourceKind.CLUSTER: "CREATE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE",
    ResourceKind.TRANSACTIONAL_ID: "WRITE DESCRIBE TWO_PHASE_COMMIT",
    ResourceKind.USER: "CREATE_TOKENS DESCRIBE_TOKENS",
}
"""The operations that Apache Kafka knows on each kind of resource (`AclEntry.supportedOperations`)."""
_OF_ITS_OWN = (ResourceKind.GROUP, ResourceKind.TRANSACTIONAL_ID)
SEEN, HIDDEN = "seen", "hidden"
_OF_BOTH = (ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT)
_OF_TRANSACTIONS = (
    *_OF_BOTH,
    ApiKey.PRODUCE,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
)
"""The APIs whose requests need transactional ids that are there, and those that need groups, too."""
MECHANISM = "SCRAM-SHA-256"
_PASSWORD, _SALT, _ITERATIONS = "secret", b"a salt of a test", 4096
_NOT_READY = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}


class Right(NamedTuple):
    """One operation on one kind of resource."""

    operation: Operation
    kind: ResourceKind

    def __str__(self) -> str:
        """Return it in Kafka's words."""
        return f"{self.operation.value}-{self.kind.value}"


EVERY_RIGHT = tuple(Right(Operation[word], kind) for kind, words in RIGHTS.items() for word in words.split())


class User(NamedTuple):
    """A user, and its rights."""

    name: str
    alone: Right | None = None
    """The one right that it has."""
    many: frozenset[Right] = frozenset()
    """The rights that it has for all names that begin with `seen-`."""


USERS = (
    User("nothing"),
    *(User(f"only-{right}", alone=right) for right in EVERY_RIGHT),
    *(User(f"all-but-{right}", many=frozenset(EVERY_RIGHT) - {right}) for right in EVERY_RIGHT),
    User("all", many=frozenset(EVERY_RIGHT)),
)


def rule(user: User, right: Right, name: str, pattern: Pattern = Pattern.LITERAL) -> k30_create_acls.AclCreation:
    """Return a rule that allows a user this."""
    if right.kind is ResourceKind.CLUSTER:
        name, pattern = CLUSTER_NAME, Pattern.LITERAL
    return k30_create_acls.AclCreation(
        resource_type=RESOURCE_TYPES[right.kind.value],
        resource_name=name,
        resource_pattern_type=PATTERN_TYPES[pattern.value],
        principal=f"User:{user.name}",
        host="*",
        operation=OPERATIONS[right.operation.value],
        permission_type=PERMISSIONS["Allow"],
    )


class AccessSide:
    """One of the brokers. `here` and `away` are the topics that are there and that are not."""

    here = (f"{SEEN}-here", f"{HIDDEN}-here")
    away = (f"{SEEN}-away", f"{HIDDEN}-away")
    ids_of_nobody: ClassVar = {name: bytes([7 + number]) * 16 for number, name in enumerate(away)}

    def __init__(self, local: str, secured: str) -> None:
        """Make users, rules and topics; `local` is where everything is allowed, `secured` where users log in."""
        self.admin = Wire(_address(local))
        self._secured = _address(secured)
        self._wires: dict[str, Wire] = {}
        self.ids: dict[str, bytes] = {}
        for kind in (0, 1):
            asked = k10_find_coordinator.FindCoordinatorRequest(key="x", key_type=kind)
            self.until_ready(lambda asked=asked: self.admin.ask(asked, 3).error_code)
        self.until_ready(lambda: max(each.error_code for each in self.admin.ask(_SOME_GROUPS, 5).groups))
        self._make_users()
        names = (*self.here, *self.away, *(f"{each}-new" for each in (*self.here, *self.away)))
        self.allow(
            *(
                rule(user, user.alone, name)
                for user in USERS
                if user.alone is not None and user.alone.kind in (ResourceKind.TOPIC, ResourceKind.CLUSTER)
                for name in names
                if name.startswith(SEEN)
            ),
            *(
                rule(user, right, f"{SEEN}-", Pattern.PREFIXED)
                for user in USERS
                for right in sorted(user.many, key=str)
            ),
        )
        self.restore()

    def close(self) -> None:
        """Hang up."""
        for wire in (self.admin, *self._wires.values()):
            wire.socket.close()

    # --- users and rules ----------------------------------------------------------------------------------------------

    def _make_users(self) -> None:
        password = salted_password(ALGORITHMS[MECHANISM], _PASSWORD, _SALT, _ITERATIONS)
        upsertions = [
            k51_alter_user_scram_credentials.ScramCredentialUpsertion(
                name=user.name, mechanism=1, iterations=_ITERATIONS, salt=_SALT, salted_password=password
            )
            for user in USERS
        ]
        asked = k51_alter_user_scram_credentials.AlterUserScramCredentialsRequest(upsertions=upsertions)
        assert {each.error_code for each in self.admin.ask(asked, 0).results} == {0}
        wait_until(self._logs_in, PATIENCE_S, "the last user logs in")

    def _logs_in(self) -> bool:
        wire = Wire(self._secured)
        code = _log_in(wire, USERS[-1])
        wire.socket.close()
        return code == ErrorCode.NONE

    def allow(self, *rules: k30_create_acls.AclCreation) -> None:
        """Make rules, and wait until they hold."""
        unique = list({repr(each): each for each in rules}.values())
        answer = self.admin.ask(k30_create_acls.CreateAclsRequest(creations=unique), 3)
        assert {each.error_code for each in answer.results} <= {0}
        if unique:
            wait_until(lambda: self._holds(unique[-1]), PATIENCE_S)

    def allow_alone(self, names: Iterable[Names]) -> None:
        """Give the users with one right what they have of groups and transactional ids with these names."""
        rules = []
        for user in USERS:
            if user.alone is not None and user.alone.kind in _OF_ITS_OWN:
                mine = (each.groups[0] for each in names if each.groups[0].endswith(f"-{user.name}"))
                rules += [rule(user, user.alone, name) for name in mine]
        self.allow(*rules)

    def _holds(self, created: k30_create_acls.AclCreation) -> bool:
        asked = k29_describe_acls.DescribeAclsRequest(
            resource_type_filter=created.resource_type,
            resource_name_filter=created.resource_name,
            pattern_type_filter=created.resource_pattern_type,
            principal_filter=created.principal,
            host_filter=created.host,
            operation=created.operation,
            permission_type=ANY,
        )
        return bool(self.admin.ask(asked, 3).resources)

    def wire(self, user: User) -> Wire:
        """Return the connection of a user."""
        if user.name not in self._wires:
            wire = self._wires[user.name] = Wire(self._secured)
            assert _log_in(wire, user) == ErrorCode.NONE
        return self._wires[user.name]

    def hang_up(self, user: User) -> None:
        """Forget the connection of a user."""
        self._wires.pop(user.name).socket.close()

    # --- resources ----------------------------------------------------------------------------------------------------

    def until_ready(self, code: Any) -> None:
        """Ask until the coordinator is ready."""
        wait_until(lambda: code() not in _NOT_READY, PATIENCE_S, "the coordinator is ready")

    def restore(self) -> None:
        """Bring the topics back into the state in which each request finds them."""
        wanted = set(self.here)
        found = self.topics()
        others = [name for name, partitions in found.items() if name not in wanted or partitions != 1]
        if others:
            topics = [k20_delete_topics.DeleteTopicState(name=name) for name in others]
            self.admin.ask(k20_delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=10_000), 6)
            wait_until(lambda: not self.topics().keys() & set(others), PATIENCE_S, "topics are deleted")
        missing = wanted - found.keys() | wanted & set(others)
        if missing:
            made = [
                k19_create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                for name in sorted(missing)
            ]
            self.admin.ask(k19_create_topics.CreateTopicsRequest(topics=made, timeout_ms=10_000), 7)
            wait_until(lambda: self.topics() == dict.fromkeys(wanted, 1), PATIENCE_S, "topics are made")

    def topics(self) -> dict[str, int]:
        """Return the topics of the test that are there, with the number of their partitions."""
        asked = k03_metadata.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        found = [
            each
            for each in self.admin.ask(asked, 12).topics
            if each.name.startswith((SEEN, HIDDEN)) and all(not one.error_code for one in each.partitions)
        ]
        self.ids = {each.name: each.topic_id for each in found} | self.ids_of_nobody
        return {each.name: len(each.partitions) for each in found}

    def furnish(self, key: ApiKey, version: int, names: Names) -> dict[str, tuple[int, int]]:
        """Make what a request needs: groups, and transactional ids; return these with producer id and epoch.

        Groups have offsets, or members where these are described: by one version with partitions of both topics, and
        by the next one of the first topic alone. Transactions are open, and have partitions, where they are described.
        """
        if key is ApiKey.CONSUMER_GROUP_DESCRIBE:
            self._join(names.groups, names.topics[: 2 - version])
        elif key not in _OF_TRANSACTIONS or key in _OF_BOTH:
            self._commit(names)
        bound = self._bind(names) if key in _OF_TRANSACTIONS else {}
        if key is ApiKey.DESCRIBE_TRANSACTIONS:
            for transactional_id in names.transactional_ids:
                made = msgspec.structs.replace(names, transactional_ids=[transactional_id], bound=bound)
                answer = self.admin.ask(requests.add_partitions(3, made), 3)
                topics = answer.results_by_topic_v3_and_below
                assert {each.results_by_partition[0].partition_error_code for each in topics} == {0}
        return bound

    def _join(self, groups: Iterable[str], topics: Sequence[str]) -> None:
        """Let a member join each group, and get the partitions of the topics."""
        for group in groups:
            request = requests.consumer_heartbeat(1, Names(groups=[group], topics=topics, transactional_ids=[]))
            self.until_ready(lambda: self.admin.ask(request, 1).error_code)  # noqa: B023

    def _commit(self, names: Names) -> None:
        for group in names.groups:
            commit = k08_offset_commit.OffsetCommitRequest(
                group_id=group,
                topics=[
                    k08_offset_commit.OffsetCommitRequestTopic(
                        name=topic,
                        partitions=[k08_offset_commit.OffsetCommitRequestPartition(partition_index=0)],
                    )
                    for topic in self.here
                ],
            )
            self.until_ready(lambda: self.admin.ask(commit, 8).topics[0].partitions[0].error_code)  # noqa: B023

    def _bind(self, names: Names) -> dict[str, tuple[int, int]]:
        bound = {}
        for transactional_id in names.transactional_ids:
            init = k22_init_producer_id.InitProducerIdRequest(
                transactional_id=transactional_id, transaction_timeout_ms=60_000
            )
            answer = self.admin.ask(init, 4)
            while answer.error_code in _NOT_READY | {ErrorCode.CONCURRENT_TRANSACTIONS}:
                time.sleep(0.01)
                answer = self.admin.ask(init, 4)
            bound[transactional_id] = (answer.producer_id, answer.producer_epoch)
        return bound

    # --- what is answered ---------------------------------------------------------------------------------------------

    def told(self, answer: Any, names: Names) -> Any:
        """Return what is compared of an answer: error codes, names and operations, with what lies in which.

        Groups and transactional ids of other requests are left out, and what stands beside an error of the whole:
        clients do not read that.
        """
        if getattr(answer, "error_code", 0):
            return {"error_code": ErrorCode(answer.error_code).name}
        return self._told(answer, names)

    def _told(self, answer: Any, names: Names) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for field in answer.__struct_fields__:
            value = getattr(answer, field)
            if field.endswith("error_code"):
                found[field] = ErrorCode(value).name
            elif field.endswith("authorized_operations") or field in _NUMBERS:
                found[field] = value
            elif field == "topic_id":
                found[field] = self._names.get(bytes(value), "")
            elif isinstance(value, str) and field in _WORDS:
                found[field] = value
            elif isinstance(value, msgspec.Struct):
                found[field] = self._told(value, names)
            elif isinstance(value, list) and value and field not in _OWN:
                inner = [
                    self._told(each, names) if hasattr(each, "__struct_fields__") else each
                    for each in value
                    if not self._is_elsewhere(each)
                    and getattr(each, "group_id", getattr(each, "transactional_id", names.groups[0])) in names.groups
                ]
                found[field] = sorted(inner, key=repr)
        return found

    @staticmethod
    def _is_elsewhere(element: Any) -> bool:
        """Return whether this is about internal topics, whose partitions differ, or users of Apache Kafka's node."""
        return str(getattr(element, "name", "")).startswith("__") or getattr(element, "user", "") in ACCOUNTS

    @property
    def _names(self) -> dict[bytes, str]:
        return {topic_id: name for name, topic_id in self.ids.items()}


_SOME_GROUPS = k15_describe_groups.DescribeGroupsRequest(groups=[f"g{number}" for number in range(500)])
_NUMBERS = ("partition_index", "partition", "index", "partition_id", "resource_type")
_WORDS = (
    *("name", "topic", "group_id", "transactional_id", "resource_name", "key", "topic_name", "user"),
    *("transaction_state", "group_state", "protocol_type"),
)
_OWN = (
    *("configs", "config_entries", "api_keys", "supported_features", "finalized_features", "mechanisms"),
    *("brokers", "nodes", "node_endpoints", "replica_nodes", "isr_nodes", "active_producers", "synonyms"),
)
"""The arrays that are each broker's own; whether a client may see configurations is told by an error code."""


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _log_in(wire: Wire, user: User) -> int:
    """Log in; return the last error code."""
    assert wire.ask(SaslHandshakeRequest(mechanism=MECHANISM), 1).error_code == ErrorCode.NONE
    client = ScramClient(ALGORITHMS[MECHANISM], user.name, _PASSWORD)
    first = wire.ask(SaslAuthenticateRequest(auth_bytes=client.first()), 2)
    if first.error_code:
        return int(first.error_code)
    return int(wire.ask(SaslAuthenticateRequest(auth_bytes=client.final(bytes(first.auth_bytes))), 2).error_code)
