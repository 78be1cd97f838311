"""Spark's sink writes into partitions into which Pulsar's clients write, step by step, without a virtual machine."""

from collections import defaultdict
from collections.abc import Iterator

import pulsar
import pytest

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.one_log.clients import SECONDS
from tests.pulsar.joint import ABORT, COMMIT, Side
from tests.pulsar.wire import client
from tests.spark.by_hand import Query
from tests.spark.clusters import held_back, read_committed

PARTITIONS = 3
BATCHES = 4


@pytest.fixture(params=["at once", "one by one"])
def query(request: pytest.FixtureRequest, broker: exacta.Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Query]:
    """A query by hand, whose transactions end in both ways that the sink has."""
    if request.param == "one by one":
        monkeypatch.setattr("exacta.spark.sink.end_together.can_end_at_once", lambda *_: False)
    made = Query(broker.bootstrap_servers)
    yield made
    made.client.close()


class Beside:
    """A Pulsar client that sends a batch, and another one in a transaction, into every partition."""

    def __init__(self, url: str, topic: str) -> None:
        self._side = Side(url)
        self._sequence = 0
        self.sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        """What was sent into each partition and is not aborted."""
        for number in range(PARTITIONS):
            self._side.open_producer(f"{topic}-partition-{number}", number)

    def send(self, word: str, transaction: int | None = None) -> list[tuple[bytes, bytes]]:
        pairs = []
        for number, sent in enumerate(self.sent):
            values = (b"%s 0 of %d" % (word.encode(), number), b"%s 1 of %d" % (word.encode(), number))
            receipt = self._side.produce(*values, sequence=self._sequence, number=number, transaction=transaction)
            assert isinstance(receipt, pb.CommandSendReceipt), receipt
            pairs.append(values)
            if transaction is None:
                sent += values
        self._sequence += 2
        return pairs

    def begin(self) -> int:
        least: int = self._side.begin().txnid_least_bits
        return least

    def end(self, transaction: int, pairs: list[tuple[bytes, bytes]], *, commit: bool) -> None:
        assert not self._side.end(transaction, COMMIT if commit else ABORT).HasField("error")
        if commit:
            for sent, values in zip(self.sent, pairs, strict=True):
                sent += values

    def close(self) -> None:
        self._side.close()


def read_by_pulsar(broker: exacta.Broker, topic: str, number: int) -> list[bytes]:
    with client(broker.pulsar_url) as opened:
        reader = opened.create_reader(f"{topic}-partition-{number}", pulsar.MessageId.earliest)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(SECONDS * 1000).data())
        return found


def test_each_row_is_there_once_beside_pulsars_messages(broker: exacta.Broker, query: Query) -> None:
    beside = Beside(broker.pulsar_url, query.topic)
    for batch in range(BATCHES):
        prepared, driver = query.driver().prepare(), query.driver()
        beside.send(f"before {batch}")
        transaction = beside.begin()
        results = [query.task(prepared, batch, 0, range(10 * batch, 10 * batch + 5))]
        pairs = beside.send(f"in {batch}", transaction)
        results.append(query.task(prepared, batch, 1, range(10 * batch + 5, 10 * batch + 10)))
        beside.send(f"between {batch}")
        if batch % 2:  # either may end first
            beside.end(transaction, pairs, commit=batch > 2)
        driver.commit(results, batch, tasks=2, reads=f"batch {batch}")
        again = query.driver().prepare()  # the same batch once more, after a crash
        replayed = [query.task(again, batch, task, [-1]) for task in range(2)]
        assert [each.replayed for each in replayed] == [True, True]
        query.driver().commit(replayed, batch, tasks=2, reads=f"batch {batch}")
        if not batch % 2:
            beside.end(transaction, pairs, commit=batch > 1)
    beside.close()
    assert held_back(query.client.bootstrap, query.topic) == {}
    by_kafka: dict[int, list[bytes]] = defaultdict(list)
    for number, _, value in read_committed(query.client.bootstrap, query.topic):
        assert value is not None
        by_kafka[number].append(value)
    rows = sorted(int(value) for values in by_kafka.values() for value in values if value.isdigit())
    assert rows == list(range(10 * BATCHES))
    for number, sent in enumerate(beside.sent):
        assert [value for value in by_kafka[number] if not value.isdigit()] == in_the_order_of_the_log(sent)
        assert read_by_pulsar(broker, query.topic, number) == by_kafka[number]


def in_the_order_of_the_log(sent: list[bytes]) -> list[bytes]:
    """Return values in the order in which they were sent: what was sent in a transaction comes before its end."""
    places = {"before": 0, "in": 1, "between": 2}

    def place(value: bytes) -> tuple[int, int, int]:
        word, batch, index, _, _ = value.decode().split()
        return int(batch), places[word], int(index)

    return sorted(sent, key=place)
