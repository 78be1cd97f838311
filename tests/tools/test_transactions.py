"""kafka-transactions: who writes where, who holds readers back, and how such a one is ended."""

import pytest
from confluent_kafka import KafkaException

from tests.conformance.brokers import ON_KAFKA
from tests.tools.bench import Bench

TOOL = "kafka-transactions"


class Open:
    """A transaction with one record in the first of two partitions, offset 2: after a committed one and its marker."""

    def __init__(self, bench: Bench) -> None:
        self.topic, self.id = bench.topic(2), bench.name("id")
        self._bench = bench
        self.producer = bench.producer(self.id, transaction_timeout_ms=120_000)
        self._write()
        self.producer.commit_transaction()
        bench.until(self.end_offset, lambda found: found == 2)
        self._write()
        self.producer.flush()

    def _write(self) -> None:
        self.producer.begin_transaction()
        self.producer.produce(self.topic, b"v", partition=0)

    def end_offset(self) -> int:
        """Return the first partition's high watermark."""
        line = self._bench.good("kafka-get-offsets", "--topic-partitions", f"{self.topic}:0").lines[0]
        return int(line.rpartition(":")[2])

    def state(self) -> str:
        """Return the transaction's state, as it is described."""
        return self.described()["TransactionState"]

    def described(self) -> dict[str, str]:
        """Return what is said of the transaction."""
        (found,) = self._bench.good(TOOL, "describe", "--transactional-id", self.id).table
        return found

    def writers(self) -> list[dict[str, str]]:
        """Return what is said of who writes to the first partition."""
        asked = ("describe-producers", "--topic", self.topic, "--partition", "0")
        return self._bench.good(TOOL, *asked).table


@pytest.fixture
def opened(bench: Bench) -> Open:
    return Open(bench)


def test_transactions_are_listed(bench: Bench, opened: Open) -> None:
    def listed(*filters: str) -> dict[str, tuple[str, ...]]:
        rows = bench.good(TOOL, "list", *filters).table
        return {
            row["TransactionalId"]: (row["Coordinator"], row["ProducerId"], row["TransactionState"]) for row in rows
        }

    ongoing = (bench.node, opened.described()["ProducerId"], "Ongoing")
    assert listed()[opened.id] == ongoing
    assert listed("--transactional-id-pattern", f".{opened.id[1:-1]}[{opened.id[-1]}]") == {opened.id: ongoing}
    assert listed("--transactional-id-pattern", "nobody.*") == {}
    assert opened.id not in listed("--duration-filter", "600000")
    assert opened.id in listed("--duration-filter", "0")
    bench.bad(TOOL, "list", "--transactional-id-pattern", "*")
    opened.producer.abort_transaction()
    bench.until(lambda: listed()[opened.id][2], lambda found: found == "CompleteAbort")


def test_a_transaction_is_described(bench: Bench, opened: Open) -> None:
    found = opened.described()
    assert (found["CoordinatorId"], found["TransactionState"]) == (bench.node, "Ongoing")
    assert (found["TransactionTimeoutMs"], found["TopicPartitions"]) == ("120000", f"{opened.topic}-0")
    assert 0 <= int(found["TransactionDurationMs"]) < 120_000
    opened.producer.commit_transaction()
    bench.until(opened.state, lambda state: state == "CompleteCommit")
    assert opened.described()["TopicPartitions"] in ("", "None")
    missing = bench.name("missing")
    assert f"`{missing}` failed because the ID could not be found" in bench.bad(
        TOOL, "describe", "--transactional-id", missing
    )


def test_who_writes_to_a_partition_is_described(bench: Bench, opened: Open) -> None:
    (writer,) = opened.writers()
    producer_id = opened.described()["ProducerId"]
    assert (writer["ProducerId"], writer["LastSequence"]) == (producer_id, "1")
    assert writer["CurrentTransactionStartOffset"] == "2"
    opened.producer.abort_transaction()
    bench.until(lambda: opened.writers()[0]["CurrentTransactionStartOffset"], lambda found: found == "None")
    unwritten = bench.good(TOOL, "describe-producers", "--topic", opened.topic, "--partition", "1")
    assert len(unwritten.lines) == 1
    by_broker = ("describe-producers", "--topic", opened.topic, "--partition", "0", "--broker-id", bench.node)
    assert bench.good(TOOL, *by_broker).table[0]["ProducerId"] == producer_id


def test_nothing_hangs(bench: Bench, opened: Open) -> None:
    for where in (
        ("--broker-id", bench.node),
        ("--topic", opened.topic),
        ("--topic", opened.topic, "--partition", "0"),
    ):
        assert bench.good(TOOL, "find-hanging", *where, "--max-transaction-timeout", "0").table == []


@pytest.mark.skipif(ON_KAFKA, reason="sidecar topics are Exacta's")
def test_what_is_staged_is_not_found_hanging(bench: Bench) -> None:
    """A transaction that holds nobody back has no first offset. It is listed, and ended by its transactional id."""
    topic, transactional_id = bench.topic(1, transaction_buffer="sidecar"), bench.name("id")
    producer = bench.producer(transactional_id)
    producer.begin_transaction()
    producer.produce(topic, b"v", partition=0)
    producer.flush()
    (writer,) = bench.good(TOOL, "describe-producers", "--topic", topic, "--partition", "0").table
    assert (writer["LastSequence"], writer["CurrentTransactionStartOffset"]) == ("0", "None")
    assert bench.good(TOOL, "find-hanging", "--topic", topic, "--max-transaction-timeout", "0").table == []
    (found,) = bench.good(TOOL, "describe", "--transactional-id", transactional_id).table
    assert (found["TransactionState"], found["TopicPartitions"]) == ("Ongoing", f"{topic}-0")
    bench.good(TOOL, "forceTerminateTransaction", "--transactionalId", transactional_id)
    assert bench.good("kafka-get-offsets", "--topic-partitions", f"{topic}:0").lines == [f"{topic}:0:0"]


def test_a_transaction_is_aborted_by_its_first_offset(bench: Bench, opened: Open) -> None:
    abort = (TOOL, "abort", "--topic", opened.topic, "--partition", "0", "--start-offset")
    assert "Could not find any open transactions starting at offset 1" in bench.bad(*abort, "1")
    assert bench.good(*abort, "2").lines == []
    assert opened.writers()[0]["CurrentTransactionStartOffset"] == "None"
    assert opened.end_offset() == 4
    read = ("--topic", opened.topic, "--partition", "0", "--offset", "earliest", "--max-messages", "1")
    assert bench.good("kafka-console-consumer", *read, "--isolation-level", "read_committed").lines == ["v"]
    assert "Could not find any open transactions" in bench.bad(*abort, "2")


def test_a_transaction_is_ended_by_force(bench: Bench, opened: Open) -> None:
    bench.good(TOOL, "forceTerminateTransaction", "--transactionalId", opened.id)
    bench.until(opened.state, lambda state: state in ("CompleteAbort", "Empty"))
    bench.until(lambda: opened.writers()[0]["CurrentTransactionStartOffset"], lambda found: found == "None")
    # The producer that held it is fenced.
    with pytest.raises(KafkaException) as refused:
        opened.producer.commit_transaction(30)
    assert refused.value.args[0].name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
