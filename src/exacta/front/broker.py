"""The broker as every front sees it: the engine, the configuration, and who this broker says it is. It is made once.

The engine is called through here, so that a bug in a callback harms its own connection only.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from exacta.config.configuration import Configuration
from exacta.config.dynamic import DynamicConfiguration
from exacta.core.commands import Command
from exacta.core.ids import Ticket
from exacta.front.arrivals import Arrivals
from exacta.front.known_content import KnownContent
from exacta.front.memory import Memory
from exacta.front.meter import Meter
from exacta.front.quotas import Quotas
from exacta.front.request import Request
from exacta.front.single_broker import SingleBroker
from exacta.ports.authorizer import Authorizer, Operation, Resource
from exacta.ports.cluster import Cluster
from exacta.ports.entropy import Entropy
from exacta.ports.log import Answer, FetchRequest, FetchResult, Log, View
from exacta.ports.record_format import Buffer
from exacta.records.admission import BatchRules, KnownRules
from exacta.security.logins import Logins

T = TypeVar("T")


class Broker:
    """One for each role that a server takes; without a `cluster` nobody shares the log, and there is one.

    `wall_clock` gives the time for timestamps of records, in milliseconds since 1970.
    """

    def __init__(
        self,
        engine: Log,
        configuration: Configuration,
        entropy: Entropy,
        memory: Memory,
        authorizer: Authorizer,
        *,
        logins: Logins | None = None,
        cluster_id: str,
        cluster: Cluster | None = None,
        log_dir: Path | None = None,
        wall_clock: Callable[[], int] | None = None,
    ) -> None:
        self.engine = engine
        self.options = DynamicConfiguration(configuration, engine.advice.broker_configs)
        self.entropy = entropy
        self.memory = memory
        self.meter: Meter | None = None
        """None: nobody asks for the numbers of requests."""
        self.authorizer = authorizer
        self.known_content = KnownContent()
        self.quotas = Quotas(engine.advice)
        self.logins = logins
        """The logins at the doors that ask for one; None: no door does."""
        self.arrivals = Arrivals(engine.scheduler)
        """The connections that have not logged in yet."""
        self.cluster_id = cluster_id
        self.cluster: Cluster = SingleBroker(configuration.node_id) if cluster is None else cluster
        """The brokers that share the log; which of them leads it is the same for the life of this object."""
        self.log_dir = log_dir
        """The directory in which everything lies; None: in memory."""
        self.wall_ms = wall_clock or engine.now_ms
        self._rules = KnownRules(lambda: self.configuration)

    @property
    def configuration(self) -> Configuration:
        """The configuration as it is in this step. A change of it is seen by code that looks here each time."""
        return self.options.now

    def submit(
        self,
        request: Request,
        commands: Sequence[Command],
        done: Callable[[list[Answer]], None],
        payloads: Sequence[Buffer | None] | None = None,
    ) -> None:
        """See `Log.submit`."""
        request.rests_on(self.engine.submit(commands, request.guard(done), payloads, request.connection.peer_host))

    def ask(self, request: Request, command: Command, done: Callable[[Answer], None]) -> None:
        """Submit one command; `done` gets its answer."""
        self.submit(request, (command,), lambda answers: done(answers[0]))

    def read(self, request: Request, view: View[T], done: Callable[[T], None]) -> None:
        """See `Log.read`."""
        request.rests_on(self.engine.read(view, request.guard(done)))

    def when_durable(self, request: Request, done: Callable[[], None]) -> None:
        """See `Log.confirm`, for an answer that rests on the present state: call back once that is durable."""
        request.rests_on(self.engine.confirm(_guarded(request, done)))

    def catch_up(self, request: Request, done: Callable[[], None]) -> None:
        """See `Log.catch_up`."""
        self.engine.catch_up(_guarded(request, done))

    def confirm_shown(self, request: Request, done: Callable[[], None]) -> None:
        """See `Log.confirm`, for an answer that rests only on what readers see, or on who serves the log."""
        self.engine.confirm(_guarded(request, done), True)

    def fetch(self, request: Request, wanted: FetchRequest, done: Callable[[list[FetchResult]], None]) -> None:
        """See `Log.fetch`. Its records wait for room in memory, and it is forgotten with its connection.

        It sees what the answers to earlier requests of its connection rest on.
        """
        request.reads(wanted)
        self.engine.fetch(wanted, request.guard(done), request.connection.rests_on)

    def when_shown(
        self, request: Request, partitions: Iterable[tuple[str, int]] | None, done: Callable[[], None]
    ) -> None:
        """See `Log.when_shown`. What the answers to earlier requests of this connection rest on is seen as well."""
        self.engine.when_shown(partitions, _guarded(request, done), request.connection.rests_on)

    def topic_configs(self, topic: str) -> Mapping[str, str] | None:
        """See `Advice.topic_configs`."""
        return self.engine.advice.topic_configs(topic)

    def batch_rules(self, topic: str) -> BatchRules | None:
        """Return the topic's rules for batches as they are in this step; None: there is no topic."""
        return self._rules.of(topic, self.engine.advice.topic_configs(topic))

    def allows(self, request: Request, operation: Operation, resource: Resource) -> bool:
        """Return whether the client of a request may do this."""
        authorizer = self.authorizer
        return authorizer.allows_all or authorizer.allows(
            request.principal, request.connection.peer_host, operation, resource
        )

    def new_uuid(self) -> uuid.UUID:
        """Return a fresh id for a topic or a member, which the core must be given."""
        return self.entropy.new_uuid()

    def new_ticket(self) -> Ticket:
        """See `Log.new_ticket`."""
        return self.engine.new_ticket()


def _guarded(request: Request, done: Callable[[], None]) -> Callable[[], None]:
    """Return a callback in which a bug harms the request's connection only."""
    return partial(request.guard(lambda _: done()), None)
