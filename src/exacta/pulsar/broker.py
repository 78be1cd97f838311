"""The broker as Pulsar's handlers see it: the one behind all fronts, with what only Pulsar's protocol has."""

from collections.abc import Callable, Hashable

from exacta.config.configuration import Configuration
from exacta.config.topic import MAX_MESSAGE_BYTES
from exacta.core.ids import PartitionId, ProducerId, TransactionId
from exacta.core.rejections import Rejection
from exacta.engine.engine import Engine
from exacta.engine.entry_sinks import Form
from exacta.front.broker import Broker, Identity
from exacta.front.memory import Memory
from exacta.front.request import Request
from exacta.ports.authorizer import Authorizer
from exacta.ports.entropy import Entropy
from exacta.ports.record_format import Converted, LogEntry, Wanted
from exacta.pulsar.addresses import Address, Addresses, Urls
from exacta.pulsar.announced import Announced
from exacta.pulsar.producers import Place, Producers
from exacta.records.conversion.for_pulsar import converted, is_to_be_opened, plain_bytes
from exacta.records.pulsar_entries import delivery_facts
from exacta.records.work import SHORT_BYTES, work_bytes


class PulsarBroker(Broker):
    """The broker with its Pulsar-only parts; there is one per server."""

    def __init__(
        self,
        engine: Engine,
        configuration: Configuration,
        identity: Identity,
        entropy: Entropy,
        memory: Memory,
        authorizer: Authorizer,
        *,
        wall_clock: Callable[[], int] | None = None,
        addresses: Addresses | None = None,
    ) -> None:
        """`addresses` has all that is listened on; without it there is only what `identity` advertises."""
        super().__init__(engine, configuration, identity, entropy, memory, authorizer, wall_clock=wall_clock)
        self.producers = Producers(lambda host: engine.owner_of(host))
        self.announced = Announced()
        self.addresses = addresses or Addresses(broker=Address(identity.advertised_host, identity.advertised_port))
        self.last_messages: dict[Hashable, list[Callable[[Converted | Exception | None], None]]] = {}
        """The callbacks that wait for the last batch of a partition to be read (GET_LAST_MESSAGE_ID)."""
        self.form = Form(self.convert, delivery_facts)
        """The form in which Pulsar's consumers read entries."""

    def convert(self, entries: list[LogEntry], wanted: Wanted, done: Callable[[Converted | Exception], None]) -> None:
        """Call back with entries as clients read them: those of Kafka's batches are converted, and gaps are looked for.

        See `Form.convert`.
        """
        opened = [each for each in entries if is_to_be_opened(each)]
        if not opened:
            done(Converted(entries))
            return
        size = 0
        for each in opened:
            if size <= SHORT_BYTES:
                size += work_bytes(plain_bytes(each, SHORT_BYTES), each.offset_count)
        largest = self.configuration.pulsar_max_message_size
        self.memory.conversions.convert(size, lambda: converted(entries, wanted, largest_entry=largest), done)

    def urls(self, request: Request) -> Urls:
        """Return the URLs that this client is told to connect to."""
        return self.addresses.urls(request.local_host)

    def partition_id(self, place: Place) -> PartitionId | None:
        """Return the id of a partition as it is in this step; None: it is not there."""
        return self.engine.present.partition_id(*place)

    def refusal(self, partition_id: PartitionId) -> Rejection | None:
        """Return why a partition takes no entries in this step; None: it takes them."""
        return self.engine.present.refusal(partition_id)

    def open_handle(self, transaction_id: TransactionId | None) -> ProducerId | None:
        """Return the producer id of a transaction as it is in this step; None: no such transaction is open."""
        return None if transaction_id is None else self.engine.present.handle_producer_id(transaction_id)

    def is_in_use(self, topic: str) -> bool:
        """Return whether a producer or a consumer of Pulsar's is connected to a topic, given by its name in the log."""
        indexes = range(self.engine.present.partition_count(topic))
        return any(self.producers.has((topic, index)) for index in indexes) or self.engine.present.has_consumers(topic)

    def largest_payload(self, topic: str) -> int:
        """Return how many bytes the payload of an entry may have; it says so itself, or the broker's option does."""
        own = (self.topic_configs(topic) or {}).get(MAX_MESSAGE_BYTES)
        return self.configuration.pulsar_max_message_size if own is None else int(own)
