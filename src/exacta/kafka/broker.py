"""What every handler needs: the engine, the configuration, and who this broker says it is."""

import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from exacta.config.configuration import Configuration
from exacta.core.commands import Command
from exacta.core.ids import Ticket
from exacta.core.state.state import State
from exacta.engine.engine import Answer, Engine
from exacta.engine.fetch import FetchRequest, FetchResult
from exacta.front.memory import Memory
from exacta.kafka.authorization import Authorizer, everybody
from exacta.kafka.context import RequestContext
from exacta.kafka.fetch_sessions import FetchSessions
from exacta.kafka.lost_coordinators import LostCoordinators
from exacta.ports.record_format import Buffer
from exacta.records.admission import BatchRules, KnownRules

T = TypeVar("T")

LEADER_EPOCH = 0
"""One broker leads every partition for ever."""

WILDCARDS = frozenset({"", "0.0.0.0", "::"})


class BrokerContext:
    """One per server. The engine is called through here, so that a bug in a callback harms its own connection only."""

    def __init__(
        self,
        engine: Engine,
        configuration: Configuration,
        *,
        cluster_id: str,
        advertised_host: str,
        advertised_port: int,
        log_dir: Path | None = None,
        authorize: Authorizer = everybody,
        wall_clock: Callable[[], int] | None = None,
    ) -> None:
        self.engine = engine
        self.configuration = configuration
        self.cluster_id = cluster_id
        self.authorize = authorize
        self.node_id = configuration.node_id
        self.fetch_sessions = FetchSessions(
            configuration.max_incremental_fetch_session_cache_slots, lambda: secrets.randbelow(2**31 - 1) + 1
        )
        self.memory = Memory(configuration, engine.scheduler)
        self.lost_coordinators = LostCoordinators(engine.scheduler)
        self.wall_ms = wall_clock or engine.now_ms
        """The time for timestamps of records, in milliseconds since 1970."""
        self._rules = KnownRules(configuration)
        self.log_dir = log_dir
        """Where everything lies; None: in memory."""
        self._advertised_host = advertised_host
        self._advertised_port = advertised_port

    def endpoint(self, context: RequestContext) -> tuple[str, int]:
        """Return the host and port that this client is told to connect to.

        A server on every address, with none to advertise, names the one that the client has just used.
        """
        if self._advertised_host in WILDCARDS:
            return context.local_host, self._advertised_port
        return self._advertised_host, self._advertised_port

    def submit(
        self,
        context: RequestContext,
        commands: Sequence[Command],
        done: Callable[[list[Answer]], None],
        payloads: Sequence[Buffer | None] | None = None,
    ) -> None:
        """See `Engine.submit`."""
        context.rests_on(self.engine.submit(commands, context.guard(done), payloads))

    def ask(self, context: RequestContext, command: Command, done: Callable[[Answer], None]) -> None:
        """Submit one command; `done` gets its answer."""
        context.rests_on(self.engine.submit((command,), context.guard(lambda answers: done(answers[0]))))

    def read(self, context: RequestContext, view: Callable[[State, int], T], done: Callable[[T], None]) -> None:
        """See `Engine.read`."""
        context.rests_on(self.engine.read(view, context.guard(done)))

    def when_durable(self, context: RequestContext, done: Callable[[], None]) -> None:
        """Call back once the present state is durable, since an answer rests on it without showing any of it."""
        self.read(context, lambda state, now_ms: None, lambda _: done())

    def fetch(self, context: RequestContext, request: FetchRequest, done: Callable[[list[FetchResult]], None]) -> None:
        """See `Engine.fetch`. Its records wait for room in memory, and it is forgotten with its connection.

        It sees what the answers to earlier requests of its connection rest on.
        """
        context.reads(request)
        self.engine.fetch(request, context.guard(done), context.connection.rests_on)

    def when_shown(
        self, context: RequestContext, partitions: Iterable[tuple[str, int]], done: Callable[[], None]
    ) -> None:
        """See `Engine.when_shown`. What the answers to earlier requests of this connection rest on is seen as well."""
        guarded = context.guard(lambda _: done())
        self.engine.when_shown(partitions, lambda: guarded(None), context.connection.rests_on)

    def topic_configs(self, topic: str) -> Mapping[str, str] | None:
        """See `Engine.topic_configs`."""
        return self.engine.topic_configs(topic)

    def batch_rules(self, topic: str) -> BatchRules | None:
        """Return the topic's rules for batches as they are in this step; None: there is no topic."""
        return self._rules.of(topic, self.engine.topic_configs(topic))

    def new_ticket(self) -> Ticket:
        """See `Engine.new_ticket`."""
        return self.engine.new_ticket()

    def new_uuid(self) -> uuid.UUID:
        """Return fresh entropy for topic and member ids, which the core must be given."""
        return uuid.uuid4()
