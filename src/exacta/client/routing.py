"""Send calls to the right broker: to any broker, to a leader, to a coordinator, …

This module owns the routes, the look-ups, and the repetition of calls. It does not know what a call means beyond its
error codes. `topology.py` keeps what the look-ups tell, and `connections.py` keeps the connections.

Theory of operation: a call names a *route* (any broker, a leader, a coordinator, …). The route is resolved to a
broker, the request sent, the codes in its reply looked at. A lost connection or a retriable code forgets what the
route was resolved to, waits a growing moment and tries again until the deadline; any other code is raised. Every
request sent through here may be executed twice, so only requests whose repetition is harmless belong here;
`producer.py` handles Produce by itself, because there order matters.

The client is not safe for use by several threads: each takes a client of its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from exacta.client.connection import Connection
from exacta.client.connections import Connections
from exacta.client.deadline import Backoff, Deadline, for_one_request
from exacta.client.errors import MOVED, ClientError, ConnectionLost, ErrorClass, KafkaError, classify
from exacta.client.permissions import missing_permission
from exacta.client.security import Cluster
from exacta.client.topology import Topology
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k10_find_coordinator import FindCoordinatorRequest
from exacta.protocol.kafka.schema import Message

GROUP = 0
TRANSACTION = 1


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
    """Any broker that answers."""


Route = Node | Coordinator | Leader | Controller | Anyone


class Client:
    """A cluster, reached through any of its bootstrap servers; where these are all there is to say, they will do."""

    def __init__(self, cluster: Cluster | str, *, call_timeout_ms: float = 60_000) -> None:
        self.cluster = Cluster(bootstrap=cluster) if isinstance(cluster, str) else cluster
        self.call_timeout_ms = call_timeout_ms
        self._topology = Topology()
        self._connections = Connections(self.cluster, parse_bootstrap(self.cluster.bootstrap), self._topology)

    @property
    def bootstrap(self) -> str:
        """Return the bootstrap servers, as they were given."""
        return self.cluster.bootstrap

    def close(self) -> None:
        """Close all connections; the client may be used again."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def deadline(self, timeout_ms: float | None = None) -> Deadline:
        """Return a deadline `timeout_ms` from now, by default as long as one call may take."""
        return Deadline(self.call_timeout_ms if timeout_ms is None else timeout_ms, self.cluster.request_timeout_ms)

    def refused(self, request: Message, code: int, what: str, detail: str | None = None) -> KafkaError:
        """Return the error for a code in the reply to `request`, or to that part of one; says what is not allowed.

        `detail` is what the broker has said besides.
        """
        return KafkaError(code, what, missing_permission(request, code, self.cluster.security.principal) or detail)

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
        version: int | None = None,
    ) -> Any:
        """Send `request` along `route` until it is answered without a retriable code; return the reply.

        `codes` extracts the error codes of a reply, `what` names the call in errors. `version` is one that the broker
        is known to offer; by default it is the newest that `apis.py` allows. Raises `KafkaError` for the first
        code that may not be retried, `BrokerGone` if `route` is a broker that has left, `DeadlineExceeded` when the
        time is up.
        """
        deadline = deadline or self.deadline()
        backoff = Backoff()
        while True:
            try:
                connection = self.connection(route, deadline)
                response = connection.call(request, for_one_request(deadline), version=version)
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

    def offers(
        self, route: Route, request: Message, deadline: Deadline | None = None, *, version: int | None = None
    ) -> bool:
        """Return whether the broker that `route` leads to serves an API in a version that we speak, or in `version`.

        Raises what `call` raises if no broker answers.
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
            return connection.serves(request, version)

    def ask_every_broker(self, request: Message, *, what: str, deadline: Deadline | None = None) -> Iterator[Any]:
        """Yield each broker's reply to `request`, which has one error code; raises what `call` raises.

        If a broker leaves meanwhile, all brokers that are left are asked again: one that was asked before may
        coordinate by now what the lost one did.
        """
        deadline = deadline or self.deadline()
        unasked = self.nodes(deadline)
        while unasked:
            node = Node(unasked.pop())
            try:
                yield self.call(node, request, what=what, codes=lambda reply: (reply.error_code,), deadline=deadline)
            except BrokerGone:
                unasked = self.nodes(deadline)

    def connection(self, route: Route, deadline: Deadline) -> Connection:
        """Return an open connection to the broker that `route` leads to, looking it up where unknown.

        Raises `ConnectionLost` if that broker cannot be reached now, `KafkaError` if the look-up is refused.
        """
        node_id = self.resolve(route, deadline)
        if node_id is None:
            return self._connections.seed(deadline)
        return self.broker(node_id, deadline)

    def lease(self, node_id: int, deadline: Deadline) -> Connection:
        """Return a further connection to a broker, the caller's until `release`: for requests that stay in flight."""
        self._look_for(node_id, deadline)
        return self._connections.lease(node_id, deadline)

    def release(self, node_id: int, connection: Connection) -> None:
        """Take a leased connection back, in whatever state it is."""
        self._connections.release(node_id, connection)

    def broker(self, node_id: int, deadline: Deadline) -> Connection:
        """Return the connection to a broker; raises `ConnectionLost` where it cannot be reached or has left."""
        self._look_for(node_id, deadline)
        return self._connections.broker(node_id, deadline)

    def lane(self, node_id: int, index: int, deadline: Deadline) -> Connection:
        """Return the further connection number `index` to a broker, kept for the next time."""
        self._look_for(node_id, deadline)
        return self._connections.lane(node_id, index, deadline)

    def _look_for(self, node_id: int, deadline: Deadline) -> None:
        if node_id not in self._topology.brokers:
            self.refresh([], deadline)

    def resolve(self, route: Route, deadline: Deadline) -> int | None:
        """Return the broker id that `route` leads to; None for whichever broker answers."""
        match route:
            case Node(node_id):
                if self._topology.brokers_doubtful:
                    self.refresh([], deadline)
                    if node_id not in self._topology.brokers:
                        raise BrokerGone(f"broker {node_id} has left the cluster")
                return node_id
            case Coordinator():
                if route not in self._topology.coordinators:
                    self._find_coordinator(route, deadline)
                return self._topology.coordinators[route]
            case Leader(topic, partition):
                leader = self._topology.leader(topic, partition)
                if leader is None:
                    self._raise_refusal(self.refresh([topic], deadline))
                    leader = self._topology.leader(topic, partition)
                    if leader is None:
                        raise ConnectionLost(f"{topic}-{partition} has no leader now")
                return leader
            case Controller():
                if self._topology.controller is None:
                    self.refresh([], deadline)
                return self._topology.controller
            case Anyone():
                return None

    def forget(self, route: Route) -> None:
        """Forget what `route` was resolved to."""
        match route:
            case Coordinator():
                self._topology.coordinators.pop(route, None)
            case Leader(topic, _):
                self._topology.leaders.pop(topic, None)
            case Controller():
                self._topology.controller_id = -1
            case Node():
                self._topology.brokers_doubtful = True
            case Anyone():
                pass  # a connection that is closed is replaced in any case

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
                return sorted(self._topology.brokers)

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
                return {topic: len(self._topology.leaders[topic]) for topic in wanted}
            backoff.wait(deadline, unsettled)

    def topic_names(self, *, deadline: Deadline | None = None) -> list[str]:
        """Return the names of all topics that this client may see, without the cluster's internal ones."""
        return sorted(topic.name for topic in self._all_topics(deadline) if not topic.is_internal)

    def all_partitions(self, *, deadline: Deadline | None = None) -> dict[str, list[int]]:
        """Return the partitions of all topics that this client may see: of internal ones, and without a leader, too."""
        return {
            topic.name: [partition.partition_index for partition in topic.partitions]
            for topic in self._all_topics(deadline)
        }

    def _all_topics(self, deadline: Deadline | None) -> list[Any]:
        deadline = deadline or self.deadline()
        backoff = Backoff()
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        while True:
            try:
                return [*self._connections.ask_anyone(request, deadline).topics]
            except ConnectionLost as lost:
                backoff.wait(deadline, lost)

    @property
    def cluster_id(self) -> str | None:
        """Return the id of the cluster as it was last looked up; None where it gives none."""
        return self._topology.cluster_id

    def topic_id(self, topic: str) -> bytes | None:
        """Return the id of a topic (KIP-516) as it was last looked up; None where the cluster gives none."""
        return self._topology.topic_ids.get(topic)

    def refresh(self, topics: list[str], deadline: Deadline, *, create: bool = False) -> Mapping[str, int]:
        """Ask any broker for brokers and leaders of `topics`, or to `create` those; return each topic's error code."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in topics], allow_auto_topic_creation=create
        )
        first = self._topology.controller if create else None  # of several Exactas it alone creates topics
        response = self._connections.ask_anyone(request, deadline, first)
        for node_id in self._topology.learn_brokers(response):
            self._connections.drop(node_id)
        return self._topology.learn_topics(response)

    def _unsettled(self, codes: Mapping[str, int], create: bool) -> KafkaError | None:
        """Return the first code that time may mend; raise where none can."""
        unsettled: KafkaError | None = None
        for topic, code in codes.items():
            if code == ErrorCode.NONE:
                continue
            error = self._topic_error(topic, code, create=create)
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

    def _topic_error(self, topic: str, code: int, *, create: bool = False) -> KafkaError:
        part = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=create)
        return self.refused(part, code, f"looking up topic '{topic}'")

    def _find_coordinator(self, route: Coordinator, deadline: Deadline) -> None:
        request = FindCoordinatorRequest(key=route.key, key_type=route.kind)
        backoff = Backoff()
        while True:
            # A lost connection goes to the caller, who has a back-off of its own.
            response = self._connections.ask_anyone(request, deadline)
            if response.error_code == ErrorCode.NONE:
                break
            error = self.refused(request, response.error_code, f"looking up the coordinator of '{route.key}'")
            if error.error_class is not ErrorClass.RETRIABLE:
                raise error
            backoff.wait(deadline, error)
        if self._topology.learn_coordinator(route.kind, route.key, response):
            self._connections.drop(response.node_id)


def parse_bootstrap(text: str) -> list[tuple[str, int]]:
    """Return the addresses of `host:port,host:port`; raises `BadBootstrap`."""
    addresses = []
    for part in text.split(","):
        host, separator, port = part.strip().rpartition(":")
        if not separator or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise BadBootstrap(f"'{part.strip()}' is not host:port")
        addresses.append((host.strip("[]"), int(port)))
    return addresses


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
