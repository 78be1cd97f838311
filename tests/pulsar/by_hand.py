"""A broker for Pulsar's clients whose loop is turned by hand: time is virtual, and every byte is counted.

Its client makes and reads frames by itself. It shares nothing with `protocol/pulsar/session.py`, which is in our other
clients: it exists so that one judge does not believe what the session believes.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

from google.protobuf.message import Message
from msgspec.structs import replace

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.config.options import configure
from exacta.core.state.state import State
from exacta.engine.engine import Engine
from exacta.front.doors import Door, Endpoint
from exacta.front.identity import Identify, anonymous
from exacta.ports.authorizer import Authorizer
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import unwrapped
from exacta.protocol.pulsar.entries import build_batch, build_entry
from exacta.protocol.pulsar.frames import SIZE_BYTES, Frame, build_entry_frame, build_frame, frame_at, parse_frame
from exacta.pulsar.addresses import Addresses
from exacta.pulsar.connection import PulsarClientConnection
from exacta.pulsar.shared import PulsarShared
from exacta.security.logins import Logins
from exacta.server.assembly import assemble_broker, assemble_engine
from tests.front.transport import HandTransport, Loop

DOOR = Door(front="pulsar", name="PULSAR", endpoint=Endpoint("h", 6650))


CONNECT = pb.CommandConnect(client_version="by hand", protocol_version=20)


class Client(HandTransport):
    """A connection that has said CONNECT, unless it should not."""

    def __init__(
        self,
        broker: "Broker",
        *,
        identify: Identify = anonymous,
        connects: bool = True,
        connect: pb.CommandConnect = CONNECT,
    ) -> None:
        super().__init__(broker.loop, True)
        self.connection: PulsarClientConnection = PulsarClientConnection(
            broker.shared,
            broker.door,
            cast("Any", broker.loop),
            broker.let_in,
            broker.connections.remove,
        )
        self.connection.identify = identify
        self.connection.connection_made(self)
        self._broker = broker
        self._frames: list[tuple[Frame, Any]] = []
        self.connected = self.ask(connect) if connects else None

    def send(self, *commands: Message) -> None:
        self.send_bytes(b"".join(map(build_frame, commands)))

    def answers(self) -> list[Any]:
        """Return the commands that have come since the last call."""
        return [command for _, command in self.frames()]

    def frames(self, *, peek: bool = False) -> list[tuple[Frame, Any]]:
        """Return the frames that have come since the last call, each with its command; peeking leaves them there."""
        while (frame := frame_at(bytes(self.received))) is not None:
            parsed = parse_frame(bytes(frame))
            self._frames.append((parsed, unwrapped(parsed.command)))
            del self.received[: SIZE_BYTES + len(frame)]
        found = list(self._frames)
        if not peek:
            self._frames.clear()
        return found

    def drop(self, command: Message) -> None:
        """Forget one command that was peeked at."""
        self._frames = [each for each in self._frames if each[1] is not command]

    def ask(self, command: Message) -> Any:
        """Send a command and return its answer, which must come by itself."""
        self.send(command)
        self._broker.settle()
        [answer] = self.answers()
        return answer


def send_frame(*values: bytes, sequence: int = 0, number: int = 0, transaction: int | None = None) -> bytes:
    """Build the frame of a SEND; the values have sequence ids from `sequence` on."""
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=sequence, publish_time=1_700_000_000_000)
    command = pb.CommandSend(producer_id=number, sequence_id=sequence, num_messages=len(values))
    payload = values[0]
    if len(values) > 1:
        metadata.num_messages_in_batch = len(values)
        metadata.highest_sequence_id = command.highest_sequence_id = sequence + len(values) - 1
        payload = build_batch(
            (pb.SingleMessageMetadata(sequence_id=sequence + index), value) for index, value in enumerate(values)
        )
    if transaction is not None:
        command.txnid_least_bits, command.txnid_most_bits = transaction, 0
    return b"".join(map(bytes, build_entry_frame(command, build_entry(metadata, payload))))


class Broker:
    """The loop is turned by `settle` and `pass_time`."""

    def __init__(
        self,
        authorizer: Authorizer | None = None,
        *,
        after: "Broker | None" = None,
        logins: Logins | None = None,
        **options: Any,
    ) -> None:
        """Begin with nothing, or with what a broker has left that is no more (`after`).

        Clients log in where there are `logins`.
        """
        self.door = replace(DOOR, login=logins is not None)
        self.loop = Loop()
        self.storage: MemoryStorage = MemoryStorage() if after is None else after.storage
        if after is not None:
            self.loop.now_ms = after.loop.now_ms
        self.held_syncs: list[Callable[[], Any]] | None = None
        """Not None: the disk takes its time, and what it would call back waits here."""
        configuration = configure(options)
        self.journal = MemoryJournal(self.storage, self._synced)
        self.engine: Engine = assemble_engine(
            self.journal,
            self.loop,
            clock=lambda: self.loop.now_ms,
            limits=configuration.limits(),
            on_failure=lambda failure: None,
        )
        self.context = assemble_broker(
            self.engine,
            configuration,
            cluster_id="c",
            wall_clock=lambda: 1_700_000_000_000,
            authorizer=authorizer,
            logins=logins,
            memory=self.loop.memory(configuration),
        )
        self.shared = PulsarShared(self.context, Addresses(broker=DOOR))
        self.connections: list[PulsarClientConnection] = []
        self.clients: list[Client] = []

    def connect(self, **how: Any) -> Client:
        self.clients.append(Client(self, **how))
        return self.clients[-1]

    def let_in(self, connection: PulsarClientConnection) -> bool:
        self.connections.append(connection)
        return True

    def _synced(self, callback: Callable[..., Any], *args: Any) -> None:
        if self.held_syncs is None:
            self.loop.call_soon(callback, *args)
        else:
            self.held_syncs.append(lambda: callback(*args))

    def release_syncs(self) -> None:
        """Let the syncs end that have been held, and those that come."""
        held, self.held_syncs = self.held_syncs or [], None
        self.loop.ready.extend(held)

    def settle(self) -> None:
        """Let the loop turn until nothing happens any more."""
        while self.loop.ready:
            self.loop.turn()

    def pass_time(self, ms: int) -> None:
        self.loop.pass_time(ms)
        self.settle()

    def end(self) -> None:
        """Let all clients vanish; nothing may be counted any more, nor wait."""
        for client in self.clients:
            client.vanish()
        self.settle()
        for budget in (self.context.memory.requests, self.context.memory.answers):
            assert (budget.used_bytes, len(budget.line), budget.let_on) == (0, 0, None), budget.option
        assert not self.connections
        assert not self.shared.producers._by_place
        assert not self.engine.dispatcher._sinks
        self.engine.read(lambda state, now_ms: check_no_consumers(state), lambda _: None)


def check_no_consumers(state: State) -> None:
    assert not state.volatile.deliveries


def broker_by_hand() -> Iterator[Broker]:
    """Yield a broker, and end it: a fixture's function, for modules whose `broker` is turned by hand."""
    made = Broker()
    yield made
    made.end()
