"""Requests that produce, fetch and list offsets, for the tests of records over the wire."""

from typing import Any

from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from tests.kafka.wire import Wire, batch


def produce(wire: Wire, records: bytes | None, version: int = 9, acks: int = -1, **options: object) -> Any:
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(acks=acks, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    for name, value in options.items():
        setattr(request, name, value)
    response = wire.ask(request, version)
    return response.responses[0].partition_responses[0]


def list_offset(wire: Wire, timestamp: int, version: int = 7, *, committed: bool = False, epoch: int = -1) -> Any:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(
        isolation_level=int(committed), topics=[ListOffsetsTopic(name="t", partitions=[partition])]
    )
    return wire.ask(request, version).topics[0].partitions[0]


class Transaction:
    def __init__(self, wire: Wire) -> None:
        bound = wire.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
        self.wire, self.producer_id, self.epoch, self.sequence = wire, bound.producer_id, bound.producer_epoch, 0

    def add(self) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
        )
        response = self.wire.ask(request, 3)
        code: int = response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return code

    def write(self, value: bytes, version: int = 9) -> Any:
        records = batch(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        answer = produce(self.wire, records, version, transactional_id="x")
        if not answer.error_code:
            self.sequence += 1
        return answer

    def end(self, *, commit: bool) -> int:
        request = EndTxnRequest(
            transactional_id="x", producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )
        code: int = self.wire.ask(request, 4).error_code
        return code
