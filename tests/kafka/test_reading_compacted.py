"""Real consumers read what compaction leaves: gaps, horizons, markers without a transaction, an empty batch at the end.

The batches in a broker's memory are compacted while it is down, as a journal would do it.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from msgspec.structs import replace

from exacta.adapters.memory import MemoryStorage
from exacta.ports.compaction import Rules
from exacta.protocol.kafka.records import HEADER_SIZE, parse_batch_header
from exacta.records.compaction import compaction
from tests.conformance.clients import CLIENTS, Client, Isolation, TopicPartition
from tests.conformance.scenario import Scenario
from tests.kafka.test_topics import create
from tests.kafka.wire import Front, front

T0 = TopicPartition("t", 0)
DAY_MS = 86_400_000


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """One client library."""
    client = request.param()
    yield client
    client.close()


def compact(storage: MemoryStorage, rules: Rules) -> int:
    """Compact the one partition that there is; return how many batches are left."""
    one_pass = compaction(rules)
    batches = [batch for group in storage.groups for batch in group.batches]
    for _, data in batches:
        one_pass.note(data)
    left = {}
    for row, data in batches:
        rewritten = one_pass.rewrite(data, row is batches[-1][0])
        if rewritten is not None:
            changes = {"max_timestamp_ms": rewritten.max_timestamp_ms, "size": len(rewritten.batch)}
            changed = row._replace(record_count=rewritten.record_count, **changes)
            left[row.first_offset] = (changed, bytes(rewritten.batch))
    for number, group in enumerate(storage.groups):
        kept = tuple(left[row.first_offset] for row, _ in group.batches if row.first_offset in left)
        storage.groups[number] = replace(group, batches=kept)
    return len(left)


def write(broker: Front, codec: str) -> int:
    """Run six transactions over the same keys, two of which abort; return the time of what was written."""
    host, port = broker.address
    settings = {"bootstrap.servers": f"{host}:{port}", "linger.ms": 100, "compression.type": codec, "log_level": 0}
    timestamp_ms = 1_700_000_000_000
    writers = [Producer({**settings, "transactional.id": name}) for name in ("one", "two")]
    for writer in writers:
        writer.init_transactions(10)
    for number in range(6):
        writer = writers[number % 2]
        writer.begin_transaction()
        for key in range(20):
            # Of each transaction that commits something stays; the last one of them deletes some keys.
            name = b"stays-%d-%d" % (number, key) if key % 7 == 0 else b"key-%d" % key
            value = None if number == 4 and key % 5 == 0 else b"%d-%d" % (number, key) * 20
            writer.produce("t", value, key=name, partition=0, timestamp=timestamp_ms + key)
        writer.flush(10)
        if number % 3 == 2:
            writer.abort_transaction(10)
        else:
            writer.commit_transaction(10)
    plain = Producer(settings)
    plain.produce("t", b"the end", key=b"end", partition=0, timestamp=timestamp_ms)
    plain.produce("t", None, key=b"end", partition=0, timestamp=timestamp_ms)
    plain.flush(10)
    return timestamp_ms


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_left_is_read(client: Client, codec: str) -> None:
    if codec != "none" and codec not in client.compressions:
        pytest.skip("this client has no such codec")
    storage = MemoryStorage()
    with front(storage=storage) as broker:
        create(broker.connect())
        time_ms = write(broker, codec)
        before = read(broker, client)
        raw = read(broker, client, Isolation.UNCOMMITTED)
        aborted = tuple(
            (entry.producer_id, entry.first_offset, entry.last_offset)
            for partition in broker.engine._state.partitions.values()
            for entry in partition.aborted
        )
    assert len(aborted) == 2
    assert len(raw) == 6 * 20 + 2
    last = {record[1]: record for record in before}
    expected = sorted(last.values())
    batches = sum(len(group.batches) for group in storage.groups)
    assert compact(storage, Rules(now_ms=time_ms, delete_retention_ms=DAY_MS, aborted=aborted)) <= batches
    for isolation in (Isolation.COMMITTED, Isolation.UNCOMMITTED):
        with front(storage=storage) as broker:
            assert read(broker, client, isolation) == expected
    assert any(record[2] is None for record in expected)
    later = Rules(now_ms=time_ms + DAY_MS, delete_retention_ms=DAY_MS, aborted=aborted)
    compact(storage, later)
    [*_, (row, data)] = [batch for group in storage.groups for batch in group.batches]
    assert (row.record_count, len(data), parse_batch_header(data).record_count) == (0, HEADER_SIZE, 0)
    with front(storage=storage) as broker:
        assert read(broker, client) == [record for record in expected if record[2] is not None]


def read(
    broker: Front, client: Client, isolation: Isolation = Isolation.COMMITTED
) -> list[tuple[int, bytes | None, bytes | None, int]]:
    host, port = broker.address
    records = Scenario(client, f"{host}:{port}", "reader").read_records([T0], isolation)
    return [(record.offset, record.key, record.value, record.timestamp_ms) for record in records]
