"""Producer epochs near their end, where producer ids rotate (KIP-360, KIP-890): reached without 32,000 requests each.

A transactional id of a given epoch is put into the state of both brokers: into Exacta's by the event that bound it, and
into Kafka's log of transactions by a record, which its coordinator loads when it starts (so it starts twice).
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from exacta.core.apply import apply
from exacta.core.events import ProducerBound
from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k00_produce, k10_find_coordinator
from tests.kafka.wire import Front, Wire

EPOCH = 32763
"""A client that takes such an id over gets the next one; from 32766 on, ids rotate."""
_FIRST_ID = 1_000_000
_TIMEOUT_MS = 60_000
_LOG, _PARTITIONS = "__transaction_state", 50
_INTERNAL = "__admin_client"
"""The client id for which Kafka lets records into its own topics."""
_PATIENCE_S = 60.0


def prepare_kafka(address: tuple[str, int], transactional_ids: Iterable[str]) -> None:
    """Write the ids into the log that Kafka's coordinator reads when it starts the next time."""
    wire = Wire(address, _INTERNAL)
    ask = k10_find_coordinator.FindCoordinatorRequest(key="x", key_type=1)
    deadline = time.monotonic() + _PATIENCE_S
    while wire.ask(ask, 3).error_code != ErrorCode.NONE:
        assert time.monotonic() < deadline, "there is no log of transactions"
    now_ms = time.time_ns() // 1_000_000
    records: dict[int, list[tuple[bytes, bytes]]] = {}
    for number, transactional_id in enumerate(transactional_ids):
        name = transactional_id.encode()
        key = struct.pack(f">hh{len(name)}s", 0, len(name), name)
        # version, producer id, epoch, time-out, Empty, no partitions, last update, start
        value = struct.pack(">hqhibiqq", 0, _FIRST_ID + number, EPOCH, _TIMEOUT_MS, 0, -1, now_ms, -1)
        records.setdefault(_java_hash(transactional_id) % _PARTITIONS, []).append((key, value))
    for partition, entries in records.items():
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 20,
        )
        for offset, (key, value) in enumerate(entries):
            builder.append(offset, now_ms, key, value, [])
        data = k00_produce.PartitionProduceData(index=partition, records=bytes(builder.build()))
        topic = k00_produce.TopicProduceData(name=_LOG, partition_data=[data])
        request = k00_produce.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
        while (code := wire.ask(request, 9).responses[0].partition_responses[0].error_code) != ErrorCode.NONE:
            assert time.monotonic() < deadline, ErrorCode(code).name
    wire.socket.close()


def prepare_exacta(broker: Front, transactional_ids: Iterable[str]) -> None:
    """Let Exacta have given out the same."""

    def bind() -> None:
        for number, transactional_id in enumerate(transactional_ids):
            bound = ProducerBound(
                transactional_id=transactional_id,
                producer_id=ProducerId(_FIRST_ID + number),
                producer_epoch=ProducerEpoch(EPOCH),
                transaction_timeout_ms=_TIMEOUT_MS,
                at_ms=time.time_ns() // 1_000_000,
                previous_producer_id=ProducerId(-1),
                previous_producer_epoch=ProducerEpoch(-1),
            )
            apply(broker.engine._state, bound)

    broker.on_loop(bind)


def _java_hash(text: str) -> int:
    """Return the absolute value of Java's hash of a string, by which Kafka chooses a partition."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFF_FFFF
    signed = value - (1 << 32) if value >> 31 else value
    return 0 if signed == -(1 << 31) else abs(signed)
