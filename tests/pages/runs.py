"""The runs of the examples: the sections of pages that belong together, and how they are run.

A new example belongs to a run, or its lines are in `not_run.py`; else `test_every_example_is_run_or_listed` fails.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from exacta.adapters.local.damage.inspection import SoundGroup, inspect
from tests import repairing
from tests.pages.blocks import Block
from tests.pages.names import (
    BEGINNING,
    BEGINNING_PULSAR,
    BEGINNING_SPARK,
    BEGINNING_TESTS,
    CLUSTERS,
    COMMANDS,
    CONFIGURE,
    DATABASE,
    EXACTLY_ONCE,
    FROM_TESTCONTAINERS,
    MIGRATING,
    MOVING,
    README,
    REPAIR,
    SPARK,
    TESTING,
    TRANSACTIONS,
    TUTORIAL,
)

# All that is changed in an example before it is run: the broker's addresses, and a checkpoint, in the run's folder.
ADDRESSES = ("127.0.0.1:9092", "broker-1:9092")
PULSAR_ADDRESS = "127.0.0.1:6650"
OLD_ADDRESS = "kafka-1:9092"  # of the cluster that a page moves away from
PLACE = "/path/to/checkpoint"


@dataclass(frozen=True)
class Run:
    """Examples that a reader goes through in order: one folder, one broker, and one Python for blocks in a row."""

    page: str
    sections: tuple[str, ...]
    """Empty: the whole page."""
    spark: bool = False
    """It starts Spark."""
    serves: bool = False
    """It starts a broker itself."""
    pulsar: bool = False
    """The broker that is there serves Pulsar's clients, too."""
    prepare: Callable[[str, Path], object] = lambda servers, folder: None
    """Called before, with the broker's address and the folder in which the examples are run."""
    old: Callable[[str], object] | None = None
    """There is a second broker, at OLD_ADDRESS, which this fills."""
    context: str = ""
    """Python that comes before the first block of Python: what the page takes for given."""
    afterwards: str = ""
    """Python that comes behind the last one: it waits for what the page has started."""
    environment: Mapping[str, str] = field(default_factory=dict)
    answers: str = ""
    """The text that is typed when a command asks."""
    exits: Mapping[str, int] = field(default_factory=dict)
    """Blocks of commands, by their first, that end with another code than 0."""
    prints: str = ""
    """An expression for what is printed meanwhile, among other things."""
    expects: Mapping[str, Mapping[bytes, int]] = field(default_factory=dict)
    """The values that topics hold in the end, for readers of committed records, and how often."""

    def __str__(self) -> str:
        return f"{self.page}#{self.sections[0]}" if self.sections else self.page

    def has(self, block: Block) -> bool:
        """Return whether a block is one of its examples."""
        return block.page == self.page and (not self.sections or block.section in self.sections)


def _an_open_transaction(servers: str, _: Path) -> Producer:
    plain = Producer({"bootstrap.servers": servers})
    for partition in (0, 1):
        for _number in range(17 + 2 * partition):
            plain.produce("orders", b"before", partition=partition)
    assert plain.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "billing"})
    for _number in range(2):  # the second one's epoch is not 0
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "orders-1", "client.id": "orders"})
        producer.init_transactions(30)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce("orders", b"open", partition=partition)
    group = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition("orders", 0, 1)], group, 30)
    assert producer.flush(30) == 0
    consumer.close()
    return producer  # as long as it lives, it has its transaction open


def _a_damaged_journal(_: str, folder: Path) -> None:
    """Wipe out the beginning of the group that has a transaction's records, in an old segment."""
    journal = folder / "data" / "journal"
    repairing.write(folder / "data")
    at = next(
        place
        for place in inspect(repairing.on_disk(journal))
        if isinstance(place, SoundGroup)
        and any((row.first_offset, row.last_offset) == (18, 19) for entry in place.group.entries for row in entry.rows)
    )
    with (journal / at.name).open("r+b") as segment:
        segment.seek(at.offset)
        segment.write(bytes(8))


def _clicks(servers: str, _: Path) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(30):
        producer.produce("clicks", b"click %d" % number, key=b"often" if number % 3 else b"%d" % number)
    assert producer.flush(30) == 0


def _events(servers: str, _: Path) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(30):
        producer.produce("events", b"event %d" % number, key=b"%d" % (number % 10))
    assert producer.flush(30) == 0


def _ten_orders(servers: str, _: Path) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(10):
        producer.produce("orders", b"order %d" % number)
    assert producer.flush(30) == 0


_UNTIL_TEN_INVOICES = """
invoiced = []
def running():
    return len(invoiced) < 10
def invoice(message):
    value = message.value if isinstance(message.value, bytes) else message.value()
    invoiced.append(value)
    return b"invoice for " + value
"""


def _orders(servers: str) -> None:
    """Write five records in two partitions, and one that is aborted."""
    admin = AdminClient({"bootstrap.servers": servers})  # a name, so that it lives until it has its answer
    admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result()
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "shop"})
    producer.init_transactions(30)
    for partitions, end in (((0, 0, 0, 1, 1), producer.commit_transaction), ((0,), producer.abort_transaction)):
        producer.begin_transaction()
        for number, partition in enumerate(partitions):
            producer.produce("orders", b"\xff%d" % number, key=b"k", headers={"n": b"1"}, partition=partition)
        producer.flush(30)
        end(30)


_A_SESSION = """
import exacta
spark = exacta.spark.session(quick_start=True, settings={"spark.sql.shuffle.partitions": "2"})
"""
_UNTIL_ALL_IS_READ = """
for query in spark.streams.active:
    query.processAllAvailable()
    query.stop()
"""
_UNTIL_THE_QUEUE_IS_EMPTY = """
from exacta.client.routing import Client
from exacta.client.subscriptions import describe_subscriptions
a_consumer().close()
producer = client.create_producer("orders")
for number in range(30):
    producer.send(b"order %d" % number)
with Client("127.0.0.1:9092") as cluster:
    while sum(each.left for each in describe_subscriptions(cluster)):
        assert spark.streams.active, "the query has failed"
for query in spark.streams.active:
    query.stop()
client.close()
"""
_A_QUERY_THAT_HAS_ENDED = """
rows = spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")
written = rows.writeStream.format("exacta").option("kafka.bootstrap.servers", "127.0.0.1:9092").option("topic", "t")
written.option("checkpointLocation", "/path/to/checkpoint").trigger(availableNow=True).start().awaitTermination()
"""

# The fixtures come by an entry point, which an installation from before they were there does not have.
_WITH_FIXTURES = {"PYTEST_ADDOPTS": "-p exacta.pytest_plugin"}

RUNS = [
    Run(BEGINNING, (), serves=True, expects={"orders": {b"42": 1, b"7": 1, b"plums": 1}, "parcels": {b"plums": 1}}),
    Run(BEGINNING_TESTS, (), serves=True, environment=_WITH_FIXTURES),
    Run(
        BEGINNING_SPARK,
        (),
        spark=True,
        serves=True,
        expects={"orders": {b"42 apples": 1, b"7 pears": 1}, "shouted": {b"42 APPLES": 1, b"7 PEARS": 1}},
    ),
    Run(
        MIGRATING,
        (),
        old=_orders,
        expects={"orders": {b"\xff0": 1, b"\xff1": 1, b"\xff2": 1, b"\xff3": 1, b"\xff4": 1}},
    ),
    Run(FROM_TESTCONTAINERS, (), serves=True, environment=_WITH_FIXTURES),
    Run(BEGINNING_PULSAR, (), serves=True, expects={"orders": {b"42 apples": 1}}),
    Run(README, ("A server",)),
    Run(README, ("A test",), serves=True, environment=_WITH_FIXTURES),
    Run("docs/explanation/sidecar-topics.md", ("Sidecar topics",), prints="^0 b'quick'$"),
    Run("docs/explanation/one-log.md", ("Each reads the other's messages",), serves=True),
    Run(
        README,
        ("A Spark job",),
        spark=True,
        serves=True,
        expects={"flights": {b"on time": 1, b"late": 1}, "shouted": {b"ON TIME": 1, b"LATE": 1}},
    ),
    Run(TUTORIAL, (), spark=True, serves=True, prints="^orders lost: 0, written more than once: [1-9]"),
    Run(
        TESTING,
        (),
        serves=True,
        context="import exacta\nfrom confluent_kafka import Producer\nbroker = exacta.Broker().start()\n",
        afterwards="producer.init_transactions()\ndel producer\nbroker.close()\n",
        environment=_WITH_FIXTURES,
        prints="^=+ 2 passed in (.|\n)*^=+ 3 passed in ",
    ),
    *(
        Run(
            EXACTLY_ONCE,
            (section,),
            prepare=_ten_orders,
            context=_UNTIL_TEN_INVOICES,
            expects={"invoices": {b"invoice for order %d" % number: 1 for number in range(10)}},
        )
        for section in ("The loop", "With aiokafka")
    ),
    Run(
        DATABASE,
        (
            "Rows of a database and messages, both or neither",
            "What is read and what is written, both or neither",
        ),
        serves=True,
        expects={"orders": {b"42 apples": 1}, "parcels": {b"42 apples": 1}},
    ),
    Run(CONFIGURE, (), serves=True),
    Run(TRANSACTIONS, (), prepare=_an_open_transaction),
    Run(COMMANDS, ()),
    Run("docs/how-to/quotas.md", ("Set a quota",)),
    Run(REPAIR, (), prepare=_a_damaged_journal, exits={"exacta log repair --data data": 1}),
    Run(
        CLUSTERS,
        ("Security", "Clean up"),
        spark=True,
        context=_A_SESSION + _A_QUERY_THAT_HAS_ENDED,
        environment={"ORDERS_PASSWORD": "secret"},
        answers="y\n",
    ),
    Run(
        SPARK,
        (
            "Connection",
            "`exacta.spark.write`: Update mode, several sinks, small batches",
            "`exacta.spark.check`",
            "One transaction for a batch",
            "What it leaves on the cluster",
        ),
        spark=True,
        prepare=_clicks,
        context=_A_SESSION,
        afterwards=_UNTIL_ALL_IS_READ,
        answers="y\n",
        expects={
            "counts": {b"20": 1, b"1": 10},
            "often": {b"20": 1},
            "clicks-by-key": {b"click %d" % number: 1 for number in range(30)},
        },
    ),
    Run(
        SPARK,
        ("A micro-batch and a work queue, both or neither",),
        spark=True,
        pulsar=True,
        context=_A_SESSION,
        afterwards=_UNTIL_THE_QUEUE_IS_EMPTY,
        expects={"invoices": {b"order %d" % number: 1 for number in range(30)}},
    ),
    Run(SPARK, ("Sessions",), spark=True),
    Run(
        MOVING,
        ("The six changes of most jobs",),
        spark=True,
        prepare=_events,
        context=_A_SESSION + 'servers, checkpoint = "127.0.0.1:9092", "/path/to/checkpoint"\n',
        afterwards=_UNTIL_ALL_IS_READ,
        expects={"counts": {b"3": 10}},
    ),
]
