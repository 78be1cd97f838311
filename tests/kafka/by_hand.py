"""A broker in memory whose event loop is turned by hand, and clients whose sockets can be looked into.

Every order of events can be had, time is virtual, and what lies in a socket is counted, not guessed.
"""

import struct
from collections.abc import Callable
from typing import Any, cast

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.config.options import configure
from exacta.engine.engine import Engine
from exacta.engine.replica import Replica
from exacta.front.doors import Door, Endpoint
from exacta.front.identity import Identify, anonymous
from exacta.kafka.connection import KafkaClientConnection
from exacta.kafka.shared import KafkaShared
from exacta.ports.authorizer import Authorizer
from exacta.ports.cluster import Cluster
from exacta.ports.log import Log
from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.codec import decode_response, encode_request
from exacta.protocol.kafka.schema import Message
from exacta.records.record_format import KafkaRecordFormat
from exacta.security.logins import Logins
from exacta.server.assembly import assemble_broker, assemble_engine
from tests.engine.following import MemoryFollower
from tests.front.transport import HandTransport, Loop

DOOR = Door(front="kafka", name="PLAINTEXT", endpoint=Endpoint("h", 9092))
DOOR_WITH_LOGINS = Door(front="kafka", name="SASL", endpoint=Endpoint("h", 9093), login=True)


class Client(HandTransport):
    """A connection that speaks Kafka's protocol."""

    def __init__(self, broker: "Broker", reads: bool, identify: Identify = anonymous) -> None:
        super().__init__(broker.loop, reads)
        self.broker = broker
        self._asked: dict[int, tuple[Message, int]] = {}
        self._count = 0
        self.connection: KafkaClientConnection = KafkaClientConnection(
            broker.shared,
            DOOR if broker.context.logins is None else DOOR_WITH_LOGINS,
            cast("Any", broker.loop),
            broker.let_in,
            broker.connections.remove,
        )
        self.connection.identify = identify
        self.connection.connection_made(self)

    def frame(self, message: Message, version: int) -> bytes:
        """Return the next request as bytes."""
        self._count += 1
        self._asked[self._count] = (message, version)
        return b"".join(encode_request(message, version, self._count, "c"))

    def send(self, message: Message, version: int) -> int:
        """Send a request; return its correlation id."""
        self.send_bytes(self.frame(message, version))
        return self._count

    def answers(self) -> list[tuple[int, Any]]:
        """Return correlation ids and answers that have come since the last call."""
        found = []
        while len(self.received) >= 4:
            size = struct.unpack_from(">i", self.received)[0]
            if len(self.received) < 4 + size:
                break
            frame = bytes(self.received[4 : 4 + size])
            del self.received[: 4 + size]
            message, version = self._asked[struct.unpack_from(">i", frame)[0]]
            found.append(decode_response(API[message.SCHEMA.key].response, version, frame))
        return found


class Broker:
    """Its budgets are looked at after every turn: the most that they held is kept."""

    def __init__(
        self,
        *,
        authorizer: Authorizer | None = None,
        logins: Logins | None = None,
        follows: "Broker | None" = None,
        cluster: Cluster | None = None,
        **options: Any,
    ) -> None:
        """Begin with nothing, or follow a broker on its loop; with `logins` clients log in."""
        self.loop: Loop = Loop() if follows is None else follows.loop
        self.storage: MemoryStorage = MemoryStorage() if follows is None else follows.storage
        self.follower = MemoryFollower(self.storage, self.loop.call_soon)
        self.engine: Engine
        self.held_syncs: list[Callable[[], Any]] | None = None
        """Not None: the disk takes its time, and what it would call back waits here."""
        configuration = configure(options)
        log: Log
        if follows is None:
            log = self.engine = assemble_engine(
                MemoryJournal(self.storage, self._synced),
                self.loop,
                clock=lambda: self.loop.now_ms,
                limits=configuration.limits(),
                on_failure=lambda failure: None,
            )
        else:
            log = Replica(
                self.follower,  # type: ignore[arg-type]  # its `lead` does not wait
                KafkaRecordFormat(),
                scheduler=self.loop,
                clock=lambda: self.loop.now_ms,
                limits=configuration.limits(),
                on_failure=lambda failure: None,
            )
        self.context = assemble_broker(
            log,
            configuration,
            cluster=cluster,
            cluster_id="c",
            authorizer=authorizer,
            logins=logins,
            memory=self.loop.memory(configuration),
        )
        self.shared = KafkaShared(self.context)
        self.connections: list[KafkaClientConnection] = []
        self.clients: list[Client] = []
        self.requests = self.context.memory.requests
        self.answers = self.context.memory.answers
        self.most_requests = self.most_answers = self.most_untaken = 0

    def connect(self, *, reads: bool = True) -> Client:
        self.clients.append(Client(self, reads))
        return self.clients[-1]

    def let_in(self, connection: KafkaClientConnection) -> bool:
        self.connections.append(connection)
        return True

    def _synced(self, callback: Callable[..., Any], *args: Any) -> None:
        if self.held_syncs is None:
            self.loop.call_soon(callback, *args)
        else:
            self.held_syncs.append(lambda: callback(*args))

    def hold_syncs(self) -> None:
        """Let no sync end, until `release_syncs`."""
        self.held_syncs = []

    def release_syncs(self) -> None:
        """Let the syncs end that have been held, and those that come."""
        held, self.held_syncs = self.held_syncs or [], None
        self.loop.ready.extend(held)

    def turn(self) -> None:
        """Let the loop turn once."""
        self.loop.turn()
        self.most_requests = max(self.most_requests, self.requests.used_bytes)
        self.most_answers = max(self.most_answers, self.answers.used_bytes)
        self.most_untaken = max(self.most_untaken, sum(len(each.untaken) for each in self.clients if not each.closed))

    def settle(self, until: Callable[[], bool] = lambda: False) -> None:
        """Let the loop turn until nothing happens any more."""
        while self.loop.ready and not until():
            self.turn()

    def pass_time(self, ms: int) -> None:
        self.loop.pass_time(ms)

    def ask(self, client: Client, message: Message, version: int) -> Any:
        """Send a request and return its answer, which must come by itself."""
        sent = client.send(message, version)
        self.settle()
        [(correlation_id, answer)] = client.answers()
        assert correlation_id == sent
        return answer

    def end(self) -> None:
        """Let all clients vanish; nothing may be counted any more, nor wait."""
        for client in self.clients:
            client.vanish()
        self.settle()
        self.pass_time(10_000)
        for budget in (self.requests, self.answers):
            assert (budget.used_bytes, len(budget.line), budget.let_on) == (0, 0, None), budget.option
            assert not budget._watched
        assert not self.connections
        assert not self.engine._fetcher._by_key
