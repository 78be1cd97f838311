"""For every command and every route of the web interface: the rights that it needs, each of which it cannot do without.

A command that needs none has a case, too, whose `reason` says why. A case is sent by alice, in a world where bob has
begun two transactions: an empty one, and one that writes to `t` and acknowledges a message of his subscription `bobs`.
"""

from collections.abc import Callable, Collection
from typing import Any

from google.protobuf.message import Message
from msgspec import Struct

from exacta.front.identity import Identity
from exacta.ports.authorizer import AllowAll, Operation, Principal, ResourceKind
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.messages_pb2 import BaseCommand
from exacta.pulsar.schemas import STRING_VERSION
from tests.kafka.access_rules import Rules
from tests.pulsar.by_hand import Broker, Client, send_frame

Right = tuple[Operation, ResourceKind, str]
NOTHING: tuple[Right, ...] = ()
ADMINISTERS: Right = (Operation.ALTER, ResourceKind.CLUSTER, "kafka-cluster")


def topic(operation: Operation, name: str = "t") -> Right:
    return operation, ResourceKind.TOPIC, name


def group(name: str) -> Right:
    return Operation.READ, ResourceKind.GROUP, name


USES_BOBS = (topic(Operation.WRITE), topic(Operation.READ), group("bobs"))
"""The rights that bob's second transaction needs of others."""


def rules(rights: Collection[Right]) -> Rules:
    """Return an authorizer that allows just these."""
    return Rules(lambda operation, resource: (operation, resource.kind, resource.name) in rights)


class World:
    """A broker with topics, subscriptions and transactions, and a connection of alice to it."""

    def __init__(self) -> None:
        self.broker = Broker(AllowAll())
        self.alice, self.bob = self.connect("alice"), self.connect("bob")
        self.alice.ask(pb.CommandProducer(topic="u", producer_id=9, request_id=1))
        for client, name, number in ((self.alice, "s", 0), (self.bob, "bobs", 1)):
            client.ask(pb.CommandProducer(topic="t", producer_id=number, request_id=2))
            client.ask(self.subscribe(name))
            client.ask(self.subscribe(f"{name}-reader", 8, durable=False))
            client.send(pb.CommandFlow(consumer_id=0, message_permits=10))
        self.alice.send_bytes(send_frame(b"message"))
        self.broker.settle()
        [found] = [each for each in self.alice.answers() if isinstance(each, pb.CommandMessage)]
        self.message = found.message_id
        self.bob.answers()
        self.alices, self.empty, self.bobs = (self.begin(each) for each in (self.alice, self.bob, self.bob))
        self.bob.send_bytes(send_frame(b"in a transaction", number=1, transaction=self.bobs))
        self.broker.settle()
        self.bob.answers()
        assert not self.bob.ask(self.ack(self.bobs)).HasField("error")

    @staticmethod
    def subscribe(name: str, number: int = 0, **more: Any) -> pb.CommandSubscribe:
        return pb.CommandSubscribe(
            topic="t",
            subscription=name,
            sub_type=pb.CommandSubscribe.Shared,
            consumer_id=number,
            request_id=3,
            initial_position=pb.CommandSubscribe.Earliest,
            **more,
        )

    def ack(self, transaction: int | None = None) -> pb.CommandAck:
        found = pb.CommandAck(consumer_id=0, ack_type=pb.CommandAck.Individual, message_id=[self.message], request_id=4)
        if transaction is not None:
            found.txnid_most_bits, found.txnid_least_bits = 0, transaction
        return found

    @staticmethod
    def begin(client: Client) -> int:
        found: int = client.ask(pb.CommandNewTxn(request_id=5, txn_ttl_millis=60_000)).txnid_least_bits
        return found

    def connect(self, name: str) -> Client:
        return self.broker.connect(identify=lambda transport: Identity(Principal(name=name)))

    def allow(self, rights: Collection[Right]) -> None:
        self.broker.context.authorizer = rules(rights)

    def tell(self, sent: Message | bytes) -> list[Any]:
        """Let alice send a command; return what comes."""
        self.alice.send_bytes(sent) if isinstance(sent, bytes) else self.alice.send(sent)
        self.broker.settle()
        return self.alice.answers()


class Case(Struct, frozen=True, kw_only=True):
    """A command of alice, and the rights that it needs."""

    name: str
    command: int
    build: Callable[[World], Message | bytes]
    rights: tuple[Right, ...] = NOTHING
    reason: str = ""
    """Why it needs none."""
    error: "pb.ServerError" = pb.ServerError.AuthorizationError
    hides: Right | None = None
    """A right without which the command says that the topic is not there."""
    ends: bool = False
    """True: it ends the connection, whatever the rights are."""


def _cases(command: int, *cases: tuple[str, Callable[[World], Message | bytes], tuple[Right, ...]], **more: Any) -> Any:
    return [Case(name=name, command=command, build=build, rights=rights, **more) for name, build, rights in cases]


def _open(command: int, reason: str, build: Callable[[World], Message | bytes], **more: Any) -> list[Case]:
    name = BaseCommand.Type.Name(command).lower()
    return [Case(name=name, command=command, build=build, reason=reason, **more)]


def _of(transaction: int) -> dict[str, int]:
    return {"txnid_most_bits": 0, "txnid_least_bits": transaction}


def _add_topic(transaction: int) -> pb.CommandAddPartitionToTxn:
    return pb.CommandAddPartitionToTxn(request_id=6, partitions=["u"], **_of(transaction))


def _add_subscription(transaction: int) -> pb.CommandAddSubscriptionToTxn:
    subscription = pb.Subscription(topic="t", subscription="s")
    return pb.CommandAddSubscriptionToTxn(request_id=6, subscription=[subscription], **_of(transaction))


def _end(transaction: int) -> pb.CommandEndTxn:
    return pb.CommandEndTxn(request_id=6, txn_action=pb.ABORT, **_of(transaction))


def _producer(**more: Any) -> pb.CommandProducer:
    return pb.CommandProducer(producer_id=5, request_id=6, **more)


OPENED = "the right was asked for when the producer or the consumer was opened"
STRING = pb.Schema(name="t", type=pb.Schema.String, schema_data=b"")

CASES: list[Case] = [
    *_open(
        BaseCommand.CONNECT,
        "it is the login; a second one ends the connection",
        lambda world: pb.CommandConnect(client_version="x"),
        ends=True,
    ),
    *_open(
        BaseCommand.AUTH_RESPONSE,
        "it is a login, and unasked ends the connection",
        lambda world: pb.CommandAuthResponse(),
        ends=True,
    ),
    *_cases(
        BaseCommand.SUBSCRIBE,
        ("durable", lambda world: world.subscribe("s2", 5), (topic(Operation.READ), group("s2"))),
        ("not durable", lambda world: world.subscribe("r", 5, durable=False), (topic(Operation.READ),)),
        (
            "not durable, and another's",
            lambda world: world.subscribe("bobs-reader", 5, durable=False),
            (topic(Operation.READ), group("bobs-reader")),
        ),
        (
            "not durable, and its own",
            lambda world: world.subscribe("s-reader", 5, durable=False),
            (topic(Operation.READ),),
        ),
    ),
    *_cases(
        BaseCommand.PRODUCER,
        ("producer", lambda world: _producer(topic="t"), (topic(Operation.WRITE),)),
        (
            "with a first subscription",
            lambda world: _producer(topic="t", initial_subscription_name="s3"),
            (topic(Operation.WRITE), topic(Operation.READ), group("s3")),
        ),
    ),
    *_cases(
        BaseCommand.PRODUCER,
        (
            "of a new topic",
            lambda world: _producer(topic="new"),
            (topic(Operation.WRITE, "new"), topic(Operation.CREATE, "new")),
        ),
        hides=topic(Operation.CREATE, "new"),
    ),
    *_open(BaseCommand.SEND, OPENED, lambda world: send_frame(b"x", sequence=1)),
    *_cases(
        BaseCommand.SEND,
        ("in its own transaction", lambda world: send_frame(b"x", sequence=1, transaction=world.alices), ()),
        ("in another's", lambda world: send_frame(b"x", sequence=1, transaction=world.bobs), USES_BOBS),
        ("in another's, empty", lambda world: send_frame(b"x", sequence=1, transaction=world.empty), (ADMINISTERS,)),
        error=pb.ServerError.NotAllowedError,
        reason=OPENED,
    ),
    *_open(BaseCommand.ACK, OPENED, lambda world: world.ack()),
    *_cases(
        BaseCommand.ACK,
        ("in its own transaction", lambda world: world.ack(world.alices), ()),
        ("in another's", lambda world: world.ack(world.bobs), USES_BOBS),
        ("in another's, empty", lambda world: world.ack(world.empty), (ADMINISTERS,)),
        reason=OPENED,
    ),
    *_open(BaseCommand.FLOW, OPENED, lambda world: pb.CommandFlow(consumer_id=0, message_permits=1)),
    *_open(BaseCommand.UNSUBSCRIBE, OPENED, lambda world: pb.CommandUnsubscribe(consumer_id=0, request_id=6)),
    *_open(BaseCommand.CLOSE_PRODUCER, OPENED, lambda world: pb.CommandCloseProducer(producer_id=0, request_id=6)),
    *_open(BaseCommand.CLOSE_CONSUMER, OPENED, lambda world: pb.CommandCloseConsumer(consumer_id=0, request_id=6)),
    *_open(BaseCommand.PING, "it tells that the client lives", lambda world: pb.CommandPing()),
    *_open(BaseCommand.PONG, "it tells that the client lives", lambda world: pb.CommandPong()),
    *_open(
        BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES,
        OPENED,
        lambda world: pb.CommandRedeliverUnacknowledgedMessages(consumer_id=0),
    ),
    *_cases(
        BaseCommand.PARTITIONED_METADATA,
        (
            "partitioned metadata",
            lambda world: pb.CommandPartitionedTopicMetadata(topic="t", request_id=6),
            (topic(Operation.DESCRIBE),),
        ),
    ),
    *_cases(
        BaseCommand.LOOKUP,
        ("lookup", lambda world: pb.CommandLookupTopic(topic="t", request_id=6), (topic(Operation.DESCRIBE),)),
    ),
    *_open(BaseCommand.CONSUMER_STATS, OPENED, lambda world: pb.CommandConsumerStats(consumer_id=0, request_id=6)),
    *_open(
        BaseCommand.SEEK,
        OPENED,
        lambda world: pb.CommandSeek(consumer_id=0, request_id=6, message_publish_time=1),
    ),
    *_open(
        BaseCommand.GET_LAST_MESSAGE_ID, OPENED, lambda world: pb.CommandGetLastMessageId(consumer_id=0, request_id=6)
    ),
    *_open(
        BaseCommand.GET_TOPICS_OF_NAMESPACE,
        "its answer leaves out what the client may not see (`test_a_list_leaves_out_what_the_client_may_not_see`)",
        lambda world: pb.CommandGetTopicsOfNamespace(namespace="public/default", request_id=6),
    ),
    # CVE-2026-105926: Apache Pulsar asked for no right in these two.
    *_cases(
        BaseCommand.GET_SCHEMA,
        (
            "get schema",
            lambda world: pb.CommandGetSchema(topic="t", schema_version=STRING_VERSION, request_id=6),
            (topic(Operation.DESCRIBE),),
        ),
    ),
    *_cases(
        BaseCommand.GET_OR_CREATE_SCHEMA,
        (
            "get or create schema",
            lambda world: pb.CommandGetOrCreateSchema(topic="t", schema=STRING, request_id=6),
            (topic(Operation.WRITE),),
        ),
    ),
    *_open(
        BaseCommand.NEW_TXN,
        "one that writes nothing and reads nothing holds nobody back",
        lambda world: pb.CommandNewTxn(request_id=6, txn_ttl_millis=1_000),
    ),
    *_cases(
        BaseCommand.ADD_PARTITION_TO_TXN,
        ("to its own", lambda world: _add_topic(world.alices), (topic(Operation.WRITE, "u"),)),
        ("to another's", lambda world: _add_topic(world.bobs), (topic(Operation.WRITE, "u"), *USES_BOBS)),
        ("to another's, empty", lambda world: _add_topic(world.empty), (topic(Operation.WRITE, "u"), ADMINISTERS)),
    ),
    *_cases(
        BaseCommand.ADD_SUBSCRIPTION_TO_TXN,
        ("to its own", lambda world: _add_subscription(world.alices), (topic(Operation.READ), group("s"))),
        ("to another's", lambda world: _add_subscription(world.bobs), (*USES_BOBS, group("s"))),
        (
            "to another's, empty",
            lambda world: _add_subscription(world.empty),
            (topic(Operation.READ), group("s"), ADMINISTERS),
        ),
    ),
    *_cases(
        BaseCommand.END_TXN,
        ("its own", lambda world: _end(world.alices), ()),
        ("another's", lambda world: _end(world.bobs), USES_BOBS),
        ("another's, as an administrator", lambda world: _end(world.bobs), (ADMINISTERS,)),
        ("another's, empty", lambda world: _end(world.empty), (ADMINISTERS,)),
        reason="it is the client's own",
    ),
    *_open(
        BaseCommand.TC_CLIENT_CONNECT_REQUEST,
        "it tells that there is one coordinator, which everybody knows",
        lambda world: pb.CommandTcClientConnectRequest(tc_id=0, request_id=6),
    ),
]
