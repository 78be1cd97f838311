"""Attackers of a Pulsar door: before the login, after it without any right, and with all of them."""

import jwt

from exacta.config.options import configure
from exacta.core.event import Event
from exacta.core.event_codec import decode_event
from exacta.core.events import HandlesAbandoned, IdsReserved, TransactionBegun, TransactionEnded
from exacta.front.identity import Identity
from exacta.ports.authorizer import ANONYMOUS, Principal
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import unwrapped
from exacta.protocol.pulsar.frames import SIZE_BYTES, build_frame, frame_at, parse_frame
from exacta.pulsar.login import Phase
from exacta.security.authorizer import AclAuthorizer
from exacta.security.backoff import LoginBackoff
from exacta.security.logins import Logins
from exacta.security.signed_tokens import SignedTokens, TokenKey
from tests.fuzz.attacking import HIDDEN, attack, check_fold, durable, jwt_of, keys_of
from tests.fuzz.changing import changed
from tests.fuzz.choices import Choices
from tests.fuzz.pulsar_commands import command
from tests.fuzz.watched import Watch
from tests.pulsar.by_hand import Broker, Client, send_frame

STRANGERS_MAY_HEAR = (pb.CommandError, pb.CommandAuthChallenge)
KEY = HIDDEN.encode() * 10
"""The key by which tokens are signed."""


def _client(broker: Broker, name: str) -> Client:
    client = Client(broker, identify=lambda transport: Identity(Principal(name=name)))
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


def before_login(data: bytes) -> None:
    """Attack a door that asks for a login, without knowing a password or a key: nothing but CONNECT is served."""
    choices = Choices(data)
    broker = Broker(logins=logins())
    with Watch(broker) as watch:

        def speak(client: Client) -> None:
            frame = command(choices) if choices.once_in(6) else build_frame(_connect(choices))
            client.send_bytes(changed(choices, frame) if choices.once_in(4) else frame)

        attack(choices, broker, lambda: broker.connect(connects=False), speak, another_in=20, lets_time_pass=False)
        for each in broker.clients:
            login = each.connection.login
            assert login is not None
            assert login.phase is Phase.BEGUN, "it has logged in"
            assert each.connection.principal == ANONYMOUS
            check_answers(bytes(each.received))
        assert not broker.storage.groups, "something was written"
    token = jwt.encode({"sub": "alice", "exp": 4_000_000_000}, KEY, "HS256")
    right = pb.CommandConnect(client_version="n", auth_method_name="token", auth_data=token.encode())
    assert isinstance(broker.connect(connects=False).ask(right), pb.CommandConnected), "a neighbour cannot log in"
    watch.check()


def logins() -> Logins:
    tokens = SignedTokens(configure({}), TokenKey(KEY, ("HS256", "HS512")), lambda: 0)
    backoff, methods = LoginBackoff(0.0, lambda: 0.0), frozenset({"token", "basic", "tls"})
    return Logins((), backoff, keys_of=keys_of, secret=b"s", wall_ms=lambda: 0, methods=methods, prove=tokens.log_in)


def _connect(choices: Choices) -> pb.CommandConnect:
    method = choices.pick(("token", "basic", "tls", "none", "", "athenz", "\0" * 3_000))
    passwords = (b"alice:a guess", b"bob:b", b"alice", b":", b"x" * 60_000)
    written = {"token": jwt_of(choices), "basic": choices.pick(passwords)}
    found = pb.CommandConnect(client_version="fuzz", protocol_version=20, auth_method_name=method)
    found.auth_data = written.get(method, b"\xff")
    found.feature_flags.supports_auth_refresh = choices.once_in(2)
    if choices.once_in(8):
        found.original_principal, found.original_auth_data = "root", "root:root"
    if choices.once_in(8):
        found.proxy_to_broker_url = choices.pick(("pulsar://10.0.0.1:6650", "file:///etc/passwd"))
    return found


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
    root = _client(broker, "root")
    furnish(broker, root)
    written = durable(broker.storage)
    with Watch(broker) as watch:

        def speak(client: Client) -> None:
            frame = command(choices)
            client.send_bytes(changed(choices, frame) if choices.once_in(4) else frame)

        clients = attack(choices, broker, lambda: _client(broker, name), speak)
        if not may_all:
            news = [decode_event(each) for each in durable(broker.storage)[len(written) :]]
            assert all(map(_is_of_empty_transaction, news)), news
            assert all(HIDDEN.encode() not in each.received for each in clients)
        assert isinstance(_client(broker, "root").ask(pb.CommandPing()), pb.CommandPong)
        check_fold(broker.engine, broker.storage)
    watch.check()


def _is_of_empty_transaction(event: Event) -> bool:
    """Return whether it is about a transaction without content, which everybody may begin who has come in."""
    if isinstance(event, TransactionEnded):
        return not (event.markers or event.entries)
    return isinstance(event, IdsReserved | TransactionBegun | HandlesAbandoned)
