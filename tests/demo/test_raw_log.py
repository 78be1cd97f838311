"""The fate of transactions, from the control batches; and what a broken reader would have shown."""

import msgspec
from confluent_kafka import Producer

from exacta.demo import topics
from exacta.demo.raw_log import BatchRange, TransactionsOfPartition, TransactionsOfTopic, read_transactions
from exacta.demo.verify import Output, judge


def batch(first, last):
    return BatchRange(first_offset=first, last_offset=last, records=last - first + 1)


def test_a_marker_decides_what_its_producer_has_open_and_nothing_else():
    partition = TransactionsOfPartition()
    partition.data(1, batch(0, 4))
    partition.data(2, batch(5, 5))
    partition.data(1, batch(6, 7))
    partition.end(1, committed=False)
    partition.data(1, batch(9, 9))
    partition.end(1, committed=True)
    topic = TransactionsOfTopic({0: partition})
    committed = [offset for offset in range(12) if topic.is_committed(0, offset)]
    assert committed == [8, 9, 10, 11]
    assert (topic.aborted_records, topic.undecided_records) == (7, 1)


def test_a_marker_without_data_is_harmless():
    partition = TransactionsOfPartition()
    partition.end(3, committed=False)
    assert TransactionsOfTopic({0: partition}).is_committed(0, 0)


class Row(msgspec.Struct, frozen=True):
    number: int


def produce(servers, topic, transactional_id, numbers):
    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id})
    producer.init_transactions()
    producer.begin_transaction()
    for number in numbers:
        producer.produce(topic, key=b"key", value=msgspec.json.encode(Row(number)), partition=number % 2)
    producer.flush()
    return producer


def test_a_reader_that_shows_aborted_rows_is_found_out(broker):
    """On a real log, a `read_committed` reader is clean, and a `read_uncommitted` reader in its place is not."""
    servers, topic = broker.bootstrap_servers, "numbers"
    topics.create(servers, [topic], partitions=2)
    produce(servers, topic, "first", range(10)).commit_transaction()
    produce(servers, topic, "second", range(10, 16)).abort_transaction()
    produce(servers, topic, "third", range(10, 20)).commit_transaction()
    still_open = produce(servers, topic, "fourth", range(20, 23))

    output = Output(
        name="numbers",
        row_type=Row,
        identity=lambda row: row.number,
        expected={number: (b"key", Row(number)) for number in range(20)},
    )
    transactions = read_transactions(servers, topic, topics.end_offsets(servers, topic))
    assert (transactions.aborted_records, transactions.undecided_records) == (6, 3)

    honest = judge(output, topics.read(servers, topic, ignore, read_committed=True), transactions)
    assert honest.exactly_once

    broken = judge(output, topics.read(servers, topic, ignore, read_committed=False), transactions)
    assert (broken.aborted_seen, broken.twice, broken.wrong, broken.lost) == (9, 6, 3, 0)
    assert not broken.exactly_once
    still_open.abort_transaction()


def ignore(_count):
    pass
