"""Attackers of a Pulsar door: before CONNECT, after it without any right, and with all of them."""

from exacta.core.event import Event
from exacta.core.event_codec import decode_event
from exacta.core.events import HandlesAbandoned, IdsReserved, TransactionBegun, TransactionEnded
from exacta.front.identity import Identity
from exacta.ports.authorizer import Principal
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import unwrapped
from exacta.protocol.pulsar.frames import SIZE_BYTES, build_frame, frame_at, parse_frame
from exacta.security.authorizer import AclAuthorizer
from tests.fuzz.changing import changed
from tests.fuzz.choices import Choices
from tests.fuzz.kafka_target import HIDDEN, MOST_STEPS, check_fold, durable
from tests.fuzz.pulsar_commands import command
from tests.fuzz.watched import Watch
from tests.pulsar.by_hand import Broker, Client, send_frame

STRANGERS_MAY_HEAR = (pb.CommandConnected, pb.CommandError, pb.CommandAuthChallenge)
CONNECT = build_frame(pb.CommandConnect(client_version="fuzz", protocol_version=20))


def _client(broker: Broker, name: str, *, connects: bool) -> Client:
    client = Client(broker, identify=lambda transport: Identity(Principal(name=name)), connects=connects)
    broker.clients.append(client)
    return client


def furnish(broker: Broker, root: Client) -> None:
    for number, topic in enumerate(("t", "u", f"{HIDDEN}-topic")):
        root.ask(pb.CommandProducer(topic=topic, producer_id=number, request_id=number))
        root.send_bytes(send_frame(f"{HIDDEN}-value".encode(), number=number))
        broker.settle()
        root.frames()
        subscription = "s" if number == 0 else f"{HIDDEN}-subscription"
        root.ask(
            pb.CommandSubscribe(
                topic=topic, subscription=subscription, sub_type="Shared", consumer_id=number, request_id=9
            )
        )
    root.frames()


def before_connect(data: bytes) -> None:
    """Attack a door before the first CONNECT: nothing but it is served."""
    choices = Choices(data)
    broker = Broker()
    with Watch(broker) as watch:
        client = None
        for _ in range(MOST_STEPS):
            if not choices.are_left:
                break
            if client is None or client.is_closing():
                client = _client(broker, "mallory", connects=False)
            frame = command(choices) if not choices.once_in(4) else CONNECT
            is_whole = choices.once_in(3)
            client.send_bytes(frame if is_whole else changed(choices, frame))
            broker.settle()
            if client.connection.client_version:
                client.vanish()  # it is served from now on; that is another target
            check_answers(bytes(client.received))
        assert not broker.storage.groups, "something was written"
        assert isinstance(broker.connect().ask(pb.CommandPing()), pb.CommandPong)
    watch.check()


def check_answers(received: bytes) -> None:
    """Raise AssertionError where a command has come that nobody hears before CONNECT."""
    assert HIDDEN.encode() not in received
    while (frame := frame_at(received)) is not None:
        answer = unwrapped(parse_frame(bytes(frame)).command)
        assert isinstance(answer, STRANGERS_MAY_HEAR), answer
        received = received[SIZE_BYTES + len(frame) :]
    assert not received, "half an answer"


def without_rights(data: bytes) -> None:
    """Attack as somebody who is connected, and for whom there is no access rule."""
    _connected(data, "mallory", may_all=False)


def with_rights(data: bytes) -> None:
    """Attack as a super user: the worst that a command can do."""
    _connected(data, "root", may_all=True)


def _connected(data: bytes, name: str, *, may_all: bool) -> None:
    choices = Choices(data)
    broker = Broker()
    broker.context.authorizer = AclAuthorizer(broker.engine.advice, frozenset({"User:root"}), allow_everyone=False)
    root = _client(broker, "root", connects=True)
    furnish(broker, root)
    written = durable(broker.storage)
    with Watch(broker) as watch:
        clients: list[Client] = []
        for _ in range(MOST_STEPS):
            if not choices.are_left:
                break
            if not clients or clients[-1].is_closing() or choices.once_in(12):
                clients.append(_client(broker, name, connects=True))
            frame = command(choices)
            clients[-1].send_bytes(changed(choices, frame) if choices.once_in(4) else frame)
            if not choices.once_in(3):
                broker.settle()
            if choices.once_in(20):
                broker.pass_time(1 + choices.below(60_000))
        broker.settle()
        broker.pass_time(1_000)
        if not may_all:
            news = [decode_event(each) for each in durable(broker.storage)[len(written) :]]
            assert all(map(_is_of_empty_transaction, news)), news
            assert all(HIDDEN.encode() not in each.received for each in clients)
        assert isinstance(_client(broker, "root", connects=True).ask(pb.CommandPing()), pb.CommandPong)
        check_fold(broker.engine, broker.storage)
    watch.check()


def _is_of_empty_transaction(event: Event) -> bool:
    """Return whether it is about a transaction without content, which everybody may begin who has come in."""
    if isinstance(event, TransactionEnded):
        return not (event.markers or event.entries)
    return isinstance(event, IdsReserved | TransactionBegun | HandlesAbandoned)
