"""The filter of markers and aborted transactions, on hand-made logs."""

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from exacta.protocol.kafka.batch_building import control_batch
from exacta.protocol.kafka.committed import visible_batches
from exacta.protocol.kafka.records import assign_offset, next_offset


class Log:
    """Record batches one after the other, as a partition holds them."""

    def __init__(self):
        self.records = b""
        self.next_offset = 0

    def add(self, producer_id, count, *, transactional=True):
        builder = DefaultRecordBatchBuilder(2, 0, int(transactional), producer_id, 0, 0, 1 << 16)
        for index in range(count):
            builder.append(index, 1, None, b"x", [])
        batch = memoryview(bytes(builder.build()))
        self.records += b"".join(bytes(part) for part in assign_offset(batch, self.next_offset))
        self.next_offset += count
        return self

    def end(self, producer_id, *, commit):
        marker = control_batch(
            self.next_offset, producer_id, 0, commit=commit, coordinator_epoch=0, timestamp_ms=1_700_000_000_000
        )
        self.records += bytes(marker)
        self.next_offset += 1
        return self

    def visible(self, aborted=(), *, committed_only=True):
        batches = visible_batches(memoryview(self.records), aborted, committed_only=committed_only)
        return [(header.base_offset, header.record_count) for header, _ in batches]


def test_nothing_aborted_leaves_out_the_markers_only():
    log = Log().add(1, 3).add(-1, 2, transactional=False).end(1, commit=True).add(-1, 1, transactional=False)
    assert log.visible() == [(0, 3), (3, 2), (6, 1)]
    assert next_offset(memoryview(log.records), -5) == 7


def test_an_aborted_transaction_between_committed_ones_of_the_same_producer():
    log = Log().add(1, 2).end(1, commit=True).add(1, 2).end(1, commit=False).add(1, 2).end(1, commit=True)
    assert log.visible([(1, 3)]) == [(0, 2), (6, 2)]


def test_interleaved_producers_are_told_apart():
    log = Log().add(1, 2).add(2, 2).add(1, 1).add(2, 1).end(2, commit=False).add(2, 1).end(1, commit=True)
    # The second transaction of producer 2 is committed.
    log.end(2, commit=True)
    assert log.visible([(2, 2)]) == [(0, 2), (4, 1), (7, 1)]


def test_a_range_that_begins_inside_an_aborted_transaction():
    log = Log().add(1, 2).add(1, 2).add(3, 1).end(1, commit=False)
    log.records = log.records[len(Log().add(1, 2).records) :]
    # The list names the transaction's first offset, which lies before the range.
    assert log.visible([(1, 0)]) == [(4, 1)]


def test_records_without_a_transaction_are_seen_whatever_their_producer_aborted():
    log = Log().add(1, 1).add(1, 1, transactional=False).end(1, commit=False)
    assert log.visible([(1, 0)]) == [(1, 1)]


def test_reading_uncommitted_records_shows_all_but_markers():
    log = Log().add(1, 2).end(1, commit=False)
    assert log.visible([(1, 0)], committed_only=False) == [(0, 2)]


def test_the_order_of_the_aborted_list_does_not_matter():
    log = Log().add(1, 1).end(1, commit=False).add(1, 1).end(1, commit=False).add(1, 1).end(1, commit=True)
    assert log.visible([(1, 2), (1, 0)]) == log.visible([(1, 0), (1, 2)]) == [(4, 1)]


def test_an_incomplete_last_batch_is_left_for_the_next_fetch():
    whole = Log().add(-1, 2, transactional=False)
    length = len(whole.records)
    whole.add(-1, 2, transactional=False)
    whole.records = whole.records[: length + 30]
    assert whole.visible() == [(0, 2)]
    assert next_offset(memoryview(whole.records), 0) == 2
    assert next_offset(memoryview(b""), 7) == 7
