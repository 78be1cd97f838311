"""A long request is served in steps, between which others are served, and is answered as a short one is."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from exacta.front.turns import STEP_ELEMENTS, TURN_SECONDS
from exacta.kafka.handlers import HANDLERS
from exacta.kafka.parts import Parts, Repeats, divided, joined
from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.compression import ZSTD
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k15_describe_groups import DescribeGroupsRequest
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from exacta.protocol.kafka.messages.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from exacta.protocol.kafka.messages.k42_delete_groups import DeleteGroupsRequest
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from exacta.protocol.kafka.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponseTopic,
)
from exacta.protocol.kafka.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
from exacta.protocol.kafka.records import HEADER_SIZE, iter_batches, recompressed
from tests.kafka.by_hand import Broker
from tests.kafka.overloading import HEARTBEAT, fetch, produce
from tests.kafka.wire import batch


class TurnByTurn:
    """A clock by which each look costs a turn, so that each step has a turn of its own."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += TURN_SECONDS
        return self.now_s


@pytest.fixture
def broker() -> Broker:
    broker = Broker()
    broker.context.memory.turns.clock = TurnByTurn()
    return broker


def groups(count: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[f"g{number}" for number in range(count)])


def create(*names: str, partitions: int = 1) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    )


def test_others_are_served_between_the_steps_and_every_element_is_answered(broker: Broker) -> None:
    long, other = broker.connect(), broker.connect()
    asked = groups(3 * STEP_ELEMENTS)
    long.send(asked, 5)
    for _ in range(10):
        broker.turn()
    assert long.received == b""
    other.send(HEARTBEAT, 2)
    broker.settle(until=lambda: len(other.received) > 0)
    assert long.received == b"", "a short request passes the long one"
    broker.settle()
    [(_, answer)] = long.answers()
    assert [each.group_id for each in answer.groups] == asked.groups
    assert {each.group_state for each in answer.groups} == {"Dead"}


def test_what_follows_on_the_connection_waits_and_is_answered_in_order(broker: Broker) -> None:
    client = broker.connect()
    client.send(create(*(f"t{number}" for number in range(300))), 7)
    client.send(MetadataRequest(topics=[MetadataRequestTopic(name="t299")], allow_auto_topic_creation=False), 12)
    broker.settle()
    [(_, created), (_, described)] = client.answers()
    assert {each.error_code for each in created.topics} == {ErrorCode.NONE}
    assert [each.error_code for each in described.topics] == [ErrorCode.NONE]


def test_a_client_that_goes_leaves_the_rest_undone_and_no_bytes(broker: Broker) -> None:
    client = broker.connect()
    client.send(create(*(f"t{number}" for number in range(1_000))), 7)
    for _ in range(12):
        broker.turn()
    client.vanish()
    broker.settle()
    assert 0 < len(broker.engine._state.topics) < 1_000
    assert broker.requests.used_bytes == 0
    broker.end()


def test_what_is_named_twice_is_refused_as_in_a_short_request(broker: Broker) -> None:
    client = broker.connect()
    names = ["twice", *(f"t{number}" for number in range(200)), "twice"]
    answer = broker.ask(client, create(*names), 7)
    refused = [each.name for each in answer.topics if each.error_code == ErrorCode.INVALID_REQUEST]
    assert refused == ["twice", "twice"]
    assert len(answer.topics) == len(names)


def test_a_topic_of_many_partitions_counts_for_them(broker: Broker) -> None:
    parts = HANDLERS[CreateTopicsRequest.SCHEMA.key].parts[0]
    request = create("a", "b", "c", partitions=400)
    found: list[Any] = list(divided(parts, request))
    assert [[topic.name for topic in part.request.topics] for part in found] == [["a"], ["b"], ["c"]]


def test_one_topic_is_divided_by_its_partitions_and_answered_as_one(broker: Broker) -> None:
    client = broker.connect()
    broker.ask(client, create("t", partitions=10), 7)
    count = 3 * STEP_ELEMENTS
    answer = broker.ask(
        client, DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=list(range(count)))]), 0
    )
    [topic] = answer.topics
    assert [each.partition_index for each in topic.partitions] == list(range(count))
    assert [each.error_code for each in topic.partitions[8:12]] == [0, 0, 3, 3]
    partitions = [DeleteRecordsPartition(partition_index=index, offset=0) for index in range(count)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=partitions)], timeout_ms=1)
    [topic] = broker.ask(client, request, 2).topics
    assert len(topic.partitions) == count


@pytest.mark.parametrize("parts_of_one", [1, 2, 3])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_each_partition_of_one_topic_is_in_one_part(parts_of_one: int, more: int) -> None:
    [parts] = HANDLERS[DescribeProducersRequest.SCHEMA.key].parts
    asked = list(range(parts_of_one * parts.most + more))
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=asked)])
    found: list[Any] = list(divided(parts, request))
    assert [index for part in found for topic in part.request.topics for index in topic.partition_indexes] == asked


REPEATED: list[tuple[Any, Any, Repeats]] = [
    (DeleteGroupsRequest(groups_names=["g"]), "groups_names", Repeats.SERVED),
    (OffsetDeleteRequest(topics=[OffsetDeleteRequestTopic(name="t")]), "topics", Repeats.SERVED),
    (DescribeGroupsRequest(groups=["g"]), "groups", Repeats.LEFT_OUT),
    (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), "topics", Repeats.REFUSED),
]


@pytest.mark.parametrize(("request_of_one", "array", "repeats"), REPEATED, ids=lambda each: str(each)[:20])
def test_one_name_many_times_is_divided_as_many_names_are(request_of_one: Any, array: str, repeats: Repeats) -> None:
    parts = HANDLERS[request_of_one.SCHEMA.key].parts[0]
    assert parts.repeats is repeats
    for count in (2 * parts.most - 1, 2 * parts.most, 2 * parts.most + 1):
        request = replace(request_of_one, **{array: getattr(request_of_one, array) * count})
        sizes = [len(getattr(part.request, array)) for part in divided(parts, request)]
        assert sum(sizes) == (1 if repeats is Repeats.LEFT_OUT else count)
        assert max(sizes) <= parts.most + 1
        assert repeats is not Repeats.REFUSED or min(sizes) > 1, "a single one would not be refused"


def test_a_partition_named_many_times_is_described_once(broker: Broker) -> None:
    client = broker.connect()
    broker.ask(client, create("t"), 7)
    asked = [
        TopicRequest(name="t", partition_indexes=[0] * 2 * STEP_ELEMENTS),
        TopicRequest(name="t", partition_indexes=[0]),
    ]
    answer = broker.ask(client, DescribeProducersRequest(topics=asked), 0)
    assert [[each.partition_index for each in topic.partitions] for topic in answer.topics] == [[0], []]


def test_a_topic_that_is_named_again_is_answered_again(broker: Broker) -> None:
    client = broker.connect()
    count = 3 * STEP_ELEMENTS
    topics = [
        DeleteRecordsTopic(name=f"t{number % 2}", partitions=[DeleteRecordsPartition(partition_index=number, offset=0)])
        for number in range(count)
    ]
    answer = broker.ask(client, DeleteRecordsRequest(topics=topics, timeout_ms=1), 2)
    found = [(topic.name, [each.partition_index for each in topic.partitions]) for topic in answer.topics]
    assert found == [(f"t{number % 2}", [number]) for number in range(count)]


def test_what_refuses_a_later_part_refuses_the_request() -> None:
    [parts] = HANDLERS[OffsetDeleteRequest.SCHEMA.key].parts
    told = OffsetDeleteResponse(topics=[OffsetDeleteResponseTopic(name="t")])
    gone = OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    assert joined(parts, [(told, False), (gone, False)]) == gone


DIVIDED = [(key, parts) for key, handler in HANDLERS.items() for parts in handler.parts]


@pytest.mark.parametrize(("key", "parts"), DIVIDED, ids=[f"{API[key].name}-{parts.elements}" for key, parts in DIVIDED])
def test_parts_name_arrays_of_the_request_and_of_its_answer(key: int, parts: Parts) -> None:
    api = API[key]
    assert parts.elements in api.request.__struct_fields__
    assert parts.answers in api.response.__struct_fields__


def test_a_malformed_long_request_ends_its_connection(broker: Broker) -> None:
    client = broker.connect()
    frame = client.frame(groups(2 * STEP_ELEMENTS), 4)
    cut = frame[4:-5]
    client.send_bytes(struct.pack(">i", len(cut)) + cut)
    broker.settle()
    assert client.closed
    assert broker.requests.used_bytes == 0


def set_codec(broker: Broker, codec: str) -> None:
    config = AlterableConfig(name="compression.type", config_operation=0, value=codec)
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])]
    )
    client = broker.connect()
    sent = client.send(request, 1)
    broker.settle(until=lambda: len(client.received) > 0)
    [(number, answer)] = client.answers()
    assert (number, answer.responses[0].error_code) == (sent, ErrorCode.NONE)


def test_a_long_batch_is_admitted_on_a_thread_by_the_rules_of_the_step_in_which_it_is_decided(broker: Broker) -> None:
    client = broker.connect()
    broker.ask(client, create("t"), 7)
    set_codec(broker, "gzip")
    threads = hold_threads(broker)
    client.send(produce(b"x" * 200_000), 9)
    client.send(produce(b"y"), 9)
    broker.settle()
    assert len(threads) == 1, "what follows waits"
    set_codec(broker, "zstd")
    threads.pop()()
    broker.settle()
    assert len(threads) == 1, "it is compressed again"
    threads.pop()()
    broker.settle()
    offsets = [answer.responses[0].partition_responses[0].base_offset for _, answer in client.answers()]
    assert offsets == [0, 1]
    codecs = {header.codec for header, _ in iter_batches(fetched(broker))}
    assert codecs == {ZSTD}


def test_a_client_that_goes_while_a_thread_works_writes_nothing(broker: Broker) -> None:
    client = broker.connect()
    broker.ask(client, create("t"), 7)
    set_codec(broker, "gzip")
    threads = hold_threads(broker)
    client.send(produce(b"x" * 200_000), 9)
    broker.settle()
    client.vanish()
    broker.settle()
    assert broker.requests.used_bytes > 200_000, "the thread has them"
    threads.pop()()
    broker.settle()
    assert fetched(broker) == b""
    broker.end()


def test_a_bomb_is_opened_on_a_thread_whatever_it_says_of_its_size(broker: Broker) -> None:
    client = broker.connect()
    broker.ask(client, create("t"), 7)
    set_codec(broker, "gzip")
    threads = hold_threads(broker)
    plain = batch(b"\0" * 1_000_000)
    bomb = recompressed(plain, plain[HEADER_SIZE:], ZSTD, 3)
    assert len(bomb) < 1_000
    client.send(_request(bomb), 9)
    broker.settle()
    assert len(threads) == 1
    threads.pop()()
    broker.settle()
    assert len(client.answers()) == 1


def _request(records: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def hold_threads(broker: Broker) -> list[Callable[[], None]]:
    """Let the work of threads wait; each function does a piece of it."""
    held: list[Callable[[], None]] = []

    def start(call: Callable[[], Any], done: Callable[[Any], Any]) -> None:
        held.append(lambda: done(call()))

    broker.context.memory.conversions._start = start
    return held


def fetched(broker: Broker) -> bytes:
    client = broker.connect()
    return bytes(broker.ask(client, fetch(), 11).responses[0].partitions[0].records or b"")
