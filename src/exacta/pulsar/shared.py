"""The parts that all connections of Pulsar's front share: the broker, and what only Pulsar's protocol has."""

from collections.abc import Callable, Hashable

from exacta.front.broker import Broker
from exacta.ports.log import Form
from exacta.ports.record_format import Converted, LogEntry, Wanted
from exacta.pulsar.addresses import Addresses, Urls
from exacta.pulsar.announced import Announced
from exacta.pulsar.producers import Producers
from exacta.records.conversion.for_pulsar import converted, is_to_be_opened, plain_bytes
from exacta.records.pulsar_entries import delivery_facts
from exacta.records.work import SHORT_BYTES, work_bytes


class PulsarShared:
    """The broker with Pulsar's parts; there is one per server."""

    def __init__(self, broker: Broker, addresses: Addresses) -> None:
        """`addresses` has all that is listened on for Pulsar's clients."""
        self.broker = broker
        self.addresses = addresses
        self.producers = Producers(lambda host: broker.engine.owner_of(host))
        self.announced = Announced()
        self.last_messages: dict[Hashable, list[Callable[[Converted | Exception | None], None]]] = {}
        """The callbacks that wait for the last batch of a partition to be read (GET_LAST_MESSAGE_ID)."""
        self.form = Form(self._convert, delivery_facts)
        """The form in which Pulsar's consumers read entries."""

    def leader_urls(self, local_host: str) -> Urls | None:
        """Return the URLs of the broker that serves all topics, for a client that has connected to this address here.

        None: there is no such broker now, or nobody knows it.
        """
        cluster = self.broker.cluster
        if cluster.leads:
            return self.addresses.urls(local_host)
        return None if cluster.leader is None else self.addresses.urls_of(cluster.leader)

    def _convert(self, entries: list[LogEntry], wanted: Wanted, done: Callable[[Converted | Exception], None]) -> None:
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
        largest = self.broker.configuration.pulsar_max_message_size
        self.broker.memory.conversions.convert(size, lambda: converted(entries, wanted, largest_entry=largest), done)
