"""Clients of the kit's tests: the settings of those of others, and requests by hand."""

import exacta
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.server.listeners import parse_endpoint
from tests.kafka.wire import Wire, batch, values_in

CALL_S = 30


def servers(broker: exacta.Broker) -> dict[str, object]:
    # Librdkafka forgets a broker otherwise that it cannot reach for a moment.
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, "metadata.recovery.strategy": "none"}


def connect(broker: exacta.Broker) -> Wire:
    endpoint = parse_endpoint(broker.bootstrap_servers)
    return Wire((endpoint.host, endpoint.port))


def produce(broker: exacta.Broker, value: bytes) -> None:
    data = PartitionProduceData(index=0, records=batch(value))
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    wire = connect(broker)
    with wire.socket:
        wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        assert wire.ask(request, 9).responses[0].partition_responses[0].error_code == ErrorCode.NONE


def consume(broker: exacta.Broker) -> list[bytes]:
    wire = connect(broker)
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    response = wire.ask(FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], min_bytes=1), 11)
    wire.socket.close()
    return values_in(response.responses[0].partitions[0].records)
