"""The cluster as a client sees it: brokers, leaders, coordinators, and calls that find the right one.

Owns the connections (one per broker), what is known about leaders and coordinators, and the repetition of calls. Does
not know what a call means beyond its error codes.

Theory of operation: a call names a *route* (any broker, a leader, a coordinator, …). The route is resolved to a
broker, the request sent, the codes in its reply looked at. A lost connection or a retriable code forgets what the
route was resolved to, waits a growing moment and tries again until the deadline; any other code is raised. Every
request sent through here may be executed twice, so only requests whose repetition is harmless belong here;
`producer.py` handles Produce by itself, because there order matters.

A broker can be away in two ways: it refuses connections, or it takes them and says nothing. Wherever any of several
brokers will do, each is therefore given a share of the time only, and one that failed comes last the next time.

Not safe for use by several threads: each takes a client of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from exacta.client.connection import Connection
from exacta.client.deadline import Backoff, Deadline
from exacta.client.errors import MOVED, ClientError, ConnectionLost, ErrorClass, KafkaError, classify
from exacta.client.permissions import missing_permission
from exacta.client.security import Cluster
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from exacta.protocol.schema import NO_UUID, Message

GROUP = 0
TRANSACTION = 1

#: A connection must be there, with login, within this time (`socket.connection.setup.timeout.ms` of the Java client).
CONNECTION_SETUP_TIMEOUT_MS = 10_000


class UnknownTopic(ClientError):
    """A topic does not exist on this cluster."""

    def __init__(self, topic: str, bootstrap: str) -> None:
        self.topic = topic
        super().__init__(f"topic '{topic}' does not exist on {bootstrap}")


class BrokerGone(ClientError):
    """A broker that was asked for by its id is no longer in the cluster."""


class BadBootstrap(ClientError, ValueError):
    """The list of bootstrap servers cannot be read."""


class Node(NamedTuple):
    """A broker by its id (any id: no one in particular)."""

    node_id: int


class Coordinator(NamedTuple):
    """The coordinator of a group or of a transactional id."""

    kind: int
    key: str


class Leader(NamedTuple):
    """The leader of a partition."""

    topic: str
    partition: int


class Controller(NamedTuple):
    """The broker that creates topics."""


class Anyone(NamedTuple):
    """Whichever broker answers."""


Route = Node | Coordinator | Leader | Controller | Anyone


class Client:
    """A cluster, reached through any of its bootstrap servers; where these are all there is to say, they will do."""

    def __init__(self, cluster: Cluster | str, *, call_timeout_ms: float = 60_000) -> None:
        self.cluster = Cluster(bootstrap=cluster) if isinstance(cluster, str) else cluster
        self.call_timeout_ms = call_timeout_ms
        self._seeds = parse_bootstrap(self.cluster.bootstrap)
        self._seed: Connection | None = None
        self._connections: dict[int, Connection] = {}
        self._lanes: dict[tuple[int, int], Connection] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._brokers_doubtful = False
        self._controller_id = -1
        self._leaders: dict[str, dict[int, int]] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._coordinators: dict[Coordinator, int] = {}

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers, as they were given."""
        return self.cluster.bootstrap

    def close(self) -> None:
        """Close all connections; the client may be used again."""
        for connection in (*self._connections.values(), *self._lanes.values()):
            connection.close()
        self._connections.clear()
        self._lanes.clear()
        if self._seed is not None:
            self._seed.close()
            self._seed = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def deadline(self, timeout_ms: float | None = None) -> Deadline:
        """Return a deadline `timeout_ms` from now, by default as long as one call may take."""
        return Deadline(self.call_timeout_ms if timeout_ms is None else timeout_ms, self.cluster.request_timeout_ms)

    def refused(self, request: Message, code: int, what: str) -> KafkaError:
        """Return the error for a code in the reply to `request`, or to that part of one; says what is not allowed."""
        return KafkaError(code, what, missing_permission(request, code, self.cluster.security.principal))

    def call(
        self,
        route: Route,
        request: Message,
        *,
        what: str,
        codes: Callable[[Any], Iterable[int]],
        deadline: Deadline | None = None,
        also_retry: frozenset[ErrorCode] = frozenset(),
        never_retry: frozenset[ErrorCode] = frozenset(),
    ) -> Any:
        """Send `request` along `route` until it is answered without a retriable code; return the reply.

        `codes` extracts the error codes of a reply, `what` names the call in errors. Raises `KafkaError` for the first
        code that may not be retried, `BrokerGone` where `route` is a broker that has left, `DeadlineExceeded` when the
        time is up.
        """
        deadline = deadline or self.deadline()
        backoff = Backoff()
        while True:
            try:
                connection = self.connection(route, deadline)
                response = connection.call(request, for_one_request(deadline))
            except ConnectionLost as lost:
                self.forget(route)
                backoff.wait(deadline, lost)
                continue
            failure = _worst(codes(response), also_retry, never_retry)
            if failure is None:
                return response
            error = self.refused(request, failure, what)
            if failure in never_retry or (error.error_class is not ErrorClass.RETRIABLE and failure not in also_retry):
                raise error
            if failure in MOVED:
                self.forget(route)
            backoff.wait(deadline, error)

    def offers(self, route: Route, request: Message, deadline: Deadline | None = None) -> bool:
        """Return whether the broker that `route` leads to serves an API in a version that we speak.

        Raises what `call` raises where no broker answers.
        """
        deadline = deadline or self.deadline()
        backoff = Backoff()
        while True:
            try:
                connection = self.connection(route, deadline)
            except ConnectionLost as lost:
                self.forget(route)
                backoff.wait(deadline, lost)
                continue
            return connection.serves(request)

    def connection(self, route: Route, deadline: Deadline) -> Connection:
        """Return an open connection to the broker that `route` leads to, looking it up where unknown.

        Raises `ConnectionLost` where that broker cannot be reached now, `KafkaError` where the look-up is refused.
        """
        node_id = self.resolve(route, deadline)
        if node_id is None:
            return self._seed_connection(deadline)
        return self.broker(node_id, deadline)

    def open(self, node_id: int, deadline: Deadline) -> Connection:
        """Open a further connection to a broker, owned by the caller: for requests that stay in flight."""
        if node_id not in self._brokers:
            self.refresh([], deadline)
            if node_id not in self._brokers:
                raise ConnectionLost(f"broker {node_id} is not there now")
        host, port = self._brokers[node_id]
        return self._connect(host, port, self._setup_deadline(deadline))

    def broker(self, node_id: int, deadline: Deadline) -> Connection:
        """Return the connection to a broker; raises `ConnectionLost` where it cannot be reached or has left."""
        connection = self._connections.get(node_id)
        if connection is None or connection.closed:
            self._connections[node_id] = connection = self.open(node_id, deadline)
        return connection

    def lane(self, node_id: int, index: int, deadline: Deadline) -> Connection:
        """Return the further connection number `index` to a broker, kept for the next time."""
        connection = self._lanes.get((node_id, index))
        if connection is None or connection.closed:
            connection = self._lanes[node_id, index] = self.open(node_id, deadline)
        assert not connection.in_flight
        return connection

    def resolve(self, route: Route, deadline: Deadline) -> int | None:
        """Return the broker id that `route` leads to; None for whichever broker answers."""
        match route:
            case Node(node_id):
                if self._brokers_doubtful:
                    self.refresh([], deadline)
                    if node_id not in self._brokers:
                        raise BrokerGone(f"broker {node_id} has left the cluster")
                return node_id
            case Coordinator():
                if route not in self._coordinators:
                    self._find_coordinator(route, deadline)
                return self._coordinators[route]
            case Leader(topic, partition):
                leader = self._leaders.get(topic, {}).get(partition)
                if leader is None:
                    self._raise_refusal(self.refresh([topic], deadline))
                    leader = self._leaders.get(topic, {}).get(partition)
                    if leader is None:
                        raise ConnectionLost(f"{topic}-{partition} has no leader now")
                return leader
            case Controller():
                if self._controller_id not in self._brokers:
                    self.refresh([], deadline)
                return self._controller_id if self._controller_id in self._brokers else None
            case Anyone():
                return None

    def forget(self, route: Route) -> None:
        """Forget what `route` was resolved to, and the connection behind it where it is closed."""
        match route:
            case Coordinator():
                self._coordinators.pop(route, None)
            case Leader(topic, _):
                self._leaders.pop(topic, None)
            case Controller():
                self._controller_id = -1
            case Node():
                self._brokers_doubtful = True
            case Anyone():
                if self._seed is not None and self._seed.closed:
                    self._seed = None

    def nodes(self, deadline: Deadline | None = None) -> list[int]:
        """Return the ids of all brokers."""
        deadline = deadline or self.deadline()
        backoff = Backoff()
        while True:
            try:
                self.refresh([], deadline)
            except ConnectionLost as lost:
                backoff.wait(deadline, lost)
            else:
                return sorted(self._brokers)

    def partitions(
        self, topics: Iterable[str], *, create: bool = False, deadline: Deadline | None = None
    ) -> dict[str, int]:
        """Return how many partitions each topic has, asking the cluster.

        Raises `UnknownTopic`. With `create`, a missing topic is created where the cluster creates topics on demand.
        """
        wanted = list(topics)
        deadline = deadline or self.deadline()
        backoff = Backoff()
        while True:
            try:
                codes = self.refresh(wanted, deadline, create=create)
            except ConnectionLost as lost:
                backoff.wait(deadline, lost)
                continue
            unsettled = self._unsettled(codes, create)
            if unsettled is None:
                return {topic: len(self._leaders[topic]) for topic in wanted}
            backoff.wait(deadline, unsettled)

    def topic_names(self, *, deadline: Deadline | None = None) -> list[str]:
        """Return the names of all topics that this client may see, without the cluster's internal ones."""
        deadline = deadline or self.deadline()
        backoff = Backoff()
        while True:
            try:
                response = self._ask_anyone(MetadataRequest(topics=None, allow_auto_topic_creation=False), deadline)
            except ConnectionLost as lost:
                backoff.wait(deadline, lost)
            else:
                return sorted(topic.name for topic in response.topics if not topic.is_internal)

    def topic_id(self, topic: str) -> bytes | None:
        """Return the id of a topic (KIP-516) as it was last looked up; None where the cluster gives none."""
        return self._topic_ids.get(topic)

    def refresh(self, topics: list[str], deadline: Deadline, *, create: bool = False) -> Mapping[str, int]:
        """Ask any broker for the brokers and for the leaders of `topics`; return the error code of each topic."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in topics], allow_auto_topic_creation=create
        )
        response = self._ask_anyone(request, deadline)
        if response.brokers:
            self._learn_brokers(response)
        codes: dict[str, int] = {}
        for topic in response.topics:
            codes[topic.name] = topic.error_code
            self._topic_ids.pop(topic.name, None)
            if topic.error_code == ErrorCode.NONE:
                if topic.topic_id != NO_UUID:
                    self._topic_ids[topic.name] = topic.topic_id
                self._leaders[topic.name] = {
                    entry.partition_index: entry.leader_id for entry in topic.partitions if entry.leader_id >= 0
                }
                if len(self._leaders[topic.name]) < len(topic.partitions):
                    codes[topic.name] = ErrorCode.LEADER_NOT_AVAILABLE
            else:
                self._leaders.pop(topic.name, None)
        return codes

    def _unsettled(self, codes: Mapping[str, int], create: bool) -> KafkaError | None:
        """Return the first code that time may mend; raise where none can."""
        unsettled: KafkaError | None = None
        for topic, code in codes.items():
            if code == ErrorCode.NONE:
                continue
            error = self._topic_error(topic, code)
            # A topic that is created on demand is unknown for a moment yet.
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not create:
                raise UnknownTopic(topic, self.bootstrap)
            if error.error_class is not ErrorClass.RETRIABLE:
                raise error
            unsettled = error
        return unsettled

    def _raise_refusal(self, codes: Mapping[str, int]) -> None:
        """Raise where a topic's leaders were not told for a reason that waiting cannot mend."""
        for topic, code in codes.items():
            if code != ErrorCode.NONE and classify(code) is not ErrorClass.RETRIABLE:
                raise self._topic_error(topic, code)

    def _topic_error(self, topic: str, code: int) -> KafkaError:
        part = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        return self.refused(part, code, f"looking up topic '{topic}'")

    def _ask_anyone(self, request: Message, deadline: Deadline) -> Any:
        """Ask the seed connection, then every other broker once; raise the last `ConnectionLost`."""
        others = list(self._brokers)
        try:
            share = _share(deadline, len(others) + 1)
            return self._seed_connection(share).call(request, for_one_request(share))
        except ConnectionLost as lost:
            self._seed = None
            last = lost
        for asked, node_id in enumerate(others):
            try:
                share = _share(deadline, len(others) - asked)
                return self.broker(node_id, share).call(request, for_one_request(share))
            except ConnectionLost as lost:
                last = lost
        raise last

    def _learn_brokers(self, response: Any) -> None:
        brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        for node_id, address in list(self._brokers.items()):
            if brokers.get(node_id) != address:
                self._drop(node_id)
        self._brokers, self._brokers_doubtful = brokers, False
        self._controller_id = response.controller_id

    def _find_coordinator(self, route: Coordinator, deadline: Deadline) -> None:
        request = FindCoordinatorRequest(key=route.key, key_type=route.kind)
        backoff = Backoff()
        while True:
            # A lost connection goes to the caller, who has a back-off of its own.
            response = self._ask_anyone(request, deadline)
            if response.error_code == ErrorCode.NONE:
                break
            error = self.refused(request, response.error_code, f"looking up the coordinator of '{route.key}'")
            if error.error_class is not ErrorClass.RETRIABLE:
                raise error
            backoff.wait(deadline, error)
        address = (response.host, response.port)
        if self._brokers.get(response.node_id) != address:
            self._drop(response.node_id)
            self._brokers[response.node_id] = address
        self._coordinators[route] = response.node_id

    def _drop(self, node_id: int) -> None:
        """Close the connections to a broker that is elsewhere now."""
        stale = [self._connections.pop(node_id, None)]
        stale += [self._lanes.pop(lane) for lane in list(self._lanes) if lane[0] == node_id]
        for connection in stale:
            if connection is not None:
                connection.close()

    def _seed_connection(self, deadline: Deadline) -> Connection:
        if self._seed is not None and not self._seed.closed:
            return self._seed
        last: ConnectionLost | None = None
        for tried, (host, port) in enumerate(list(self._seeds)):
            try:
                self._seed = self._connect(host, port, self._setup_deadline(deadline, len(self._seeds) - tried))
            except ConnectionLost as lost:
                self._seeds.append(self._seeds.pop(0))
                last = lost
            else:
                return self._seed
        raise last or ConnectionLost("no bootstrap server")

    def _setup_deadline(self, deadline: Deadline, candidates: int = 1) -> Deadline:
        """Return the deadline of a connection's setup, where so many brokers are left to be tried until `deadline`."""
        share_ms = deadline.remaining_s * 1000 / candidates
        return self.deadline(min(share_ms, CONNECTION_SETUP_TIMEOUT_MS))

    def _connect(self, host: str, port: int, deadline: Deadline) -> Connection:
        return Connection(host, port, cluster=self.cluster, deadline=deadline)


def parse_bootstrap(text: str) -> list[tuple[str, int]]:
    """Return the addresses of `host:port,host:port`; raises `BadBootstrap`."""
    addresses = []
    for part in text.split(","):
        host, separator, port = part.strip().rpartition(":")
        if not separator or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise BadBootstrap(f"'{part.strip()}' in kafka.bootstrap.servers is not host:port")
        addresses.append((host.strip("[]"), int(port)))
    return addresses


def for_one_request(deadline: Deadline) -> Deadline:
    """Return the deadline of one request: the call's, but no later than a silent broker is given up."""
    timeout_ms = deadline.request_timeout_ms
    return deadline if deadline.remaining_s * 1000 <= timeout_ms else Deadline(timeout_ms, timeout_ms)


def _share(deadline: Deadline, candidates: int) -> Deadline:
    """Return the deadline of one of `candidates` that are asked one after the other until `deadline`."""
    return Deadline(deadline.remaining_s * 1000 / candidates, deadline.request_timeout_ms)


def _worst(codes: Iterable[int], also_retry: frozenset[ErrorCode], never_retry: frozenset[ErrorCode]) -> int | None:
    """Return the code that decides: the first that may not be retried, else the first that may, else None."""
    retriable: int | None = None
    for code in codes:
        if code == ErrorCode.NONE:
            continue
        if code in never_retry or (classify(code) is not ErrorClass.RETRIABLE and code not in also_retry):
            return code
        if retriable is None:
            retriable = code
    return retriable
