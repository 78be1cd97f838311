"""The broker as every front sees it: the engine, the configuration, and who this broker says it is. It is made once.

The engine is called through here, so that a bug in a callback harms its own connection only.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from exacta.config.configuration import Configuration
from exacta.config.dynamic import DynamicConfiguration
from exacta.core.commands import Command
from exacta.core.ids import Ticket
from exacta.core.state.state import State
from exacta.engine.engine import Answer, Engine
from exacta.engine.fetch_plan import FetchRequest, FetchResult
from exacta.front.memory import Memory
from exacta.front.meter import Meter
from exacta.front.request import Request
from exacta.ports.authorizer import Authorizer
from exacta.ports.entropy import Entropy
from exacta.ports.record_format import Buffer
from exacta.records.admission import BatchRules, KnownRules

T = TypeVar("T")


class Broker:
    """One per server. `wall_clock` gives the time for timestamps of records, in milliseconds since 1970."""

    def __init__(
        self,
        engine: Engine,
        configuration: Configuration,
        entropy: Entropy,
        memory: Memory,
        authorizer: Authorizer,
        *,
        cluster_id: str,
        log_dir: Path | None = None,
        wall_clock: Callable[[], int] | None = None,
    ) -> None:
        self.engine = engine
        self.options = DynamicConfiguration(configuration, engine.present.broker_configs)
        self.entropy = entropy
        self.memory = memory
        self.meter: Meter | None = None
        """None: nobody asks for the numbers of requests."""
        self.authorizer = authorizer
        self.cluster_id = cluster_id
        self.node_id = configuration.node_id
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
        """See `Engine.submit`."""
        request.rests_on(self.engine.submit(commands, request.guard(done), payloads, request.connection.peer_host))

    def ask(self, request: Request, command: Command, done: Callable[[Answer], None]) -> None:
        """Submit one command; `done` gets its answer."""
        self.submit(request, (command,), lambda answers: done(answers[0]))

    def read(self, request: Request, view: Callable[[State, int], T], done: Callable[[T], None]) -> None:
        """See `Engine.read`."""
        request.rests_on(self.engine.read(view, request.guard(done)))

    def when_durable(self, request: Request, done: Callable[[], None]) -> None:
        """Call back once the present state is durable, since an answer rests on it without showing any of it."""
        self.read(request, lambda state, now_ms: None, lambda _: done())

    def fetch(self, request: Request, wanted: FetchRequest, done: Callable[[list[FetchResult]], None]) -> None:
        """See `Engine.fetch`. Its records wait for room in memory, and it is forgotten with its connection.

        It sees what the answers to earlier requests of its connection rest on.
        """
        request.reads(wanted)
        self.engine.fetch(wanted, request.guard(done), request.connection.rests_on)

    def when_shown(
        self, request: Request, partitions: Iterable[tuple[str, int]] | None, done: Callable[[], None]
    ) -> None:
        """See `Engine.when_shown`. What the answers to earlier requests of this connection rest on is seen as well."""
        guarded = request.guard(lambda _: done())
        self.engine.when_shown(partitions, lambda: guarded(None), request.connection.rests_on)

    def topic_configs(self, topic: str) -> Mapping[str, str] | None:
        """See `PresentState.topic_configs`."""
        return self.engine.present.topic_configs(topic)

    def batch_rules(self, topic: str) -> BatchRules | None:
        """Return the topic's rules for batches as they are in this step; None: there is no topic."""
        return self._rules.of(topic, self.engine.present.topic_configs(topic))

    def new_uuid(self) -> uuid.UUID:
        """Return a fresh id for a topic or a member, which the core must be given."""
        return self.entropy.new_uuid()

    def new_ticket(self) -> Ticket:
        """See `Engine.new_ticket`."""
        return self.engine.new_ticket()
