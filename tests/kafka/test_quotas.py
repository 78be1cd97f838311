"""Quotas by Kafka's requests: what holds for whom, the throttle time in the answer, and the muted connection (KIP-219).

Time is virtual, so that each throttle time is exact.
"""

import logging
from typing import Any

import pytest

from exacta.core.values.quotas import QuotaKey
from exacta.front import quotas as front_quotas
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.codec import encode_request
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from exacta.protocol.kafka.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from exacta.protocol.kafka.messages.k48_describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from exacta.protocol.kafka.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from simulation.clients.batches import batch
from tests.kafka.by_hand import Broker, Client

NONE, INVALID, THROTTLED = ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.THROTTLING_QUOTA_EXCEEDED
PRODUCE, FETCH = int(ApiKey.PRODUCE), int(ApiKey.FETCH)
Entity = dict[str, str | None]
USER: Entity = {"user": "ANONYMOUS"}


def entry(entity: Entity, **values: float | None) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
    )


def alter(broker: Broker, *entries: EntryData, version: int = 1, validate_only: bool = False) -> list[int]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    answer = broker.ask(broker.connect(), request, version)
    return [each.error_code for each in answer.entries]


def limited(entity: Entity = USER, **values: float | None) -> tuple[Broker, Client]:
    """Return a broker with a topic of one partition and a quota, and a client."""
    broker = Broker()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    broker.ask(broker.connect(), CreateTopicsRequest(topics=[topic]), 5)
    if values:
        assert alter(broker, entry(entity, **values)) == [NONE]
    return broker, broker.connect()


def described(broker: Broker, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    asked = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    answer = broker.ask(broker.connect(), DescribeClientQuotasRequest(components=asked, strict=strict), 1)
    if answer.error_code:
        return answer.error_code
    return {
        tuple((part.entity_type, part.entity_name) for part in each.entity): {
            value.key: value.value for value in each.values
        }
        for each in answer.entries
    }


def produce(value: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch([value], (-1, -1), -1, transactional=False, now_ms=0))
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def sized(client: Client, size: int) -> ProduceRequest:
    """Return a Produce whose frame has just this many bytes."""
    count = client._count
    for length in range(size - 200, size):
        request = produce(b"x" * length)
        is_fitting = len(client.frame(request, 9)) == size
        client._count = count
        if is_fitting:
            return request
    raise AssertionError(size)


def fetch(offset: int = 0, max_bytes: int = 1 << 20, max_wait_ms: int = 0) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )


# --- what is set --------------------------------------------------------------------------------------------------


def test_quotas_are_set_described_and_removed() -> None:
    broker, _ = limited()
    assert described(broker) == {}
    both: Entity = {"user": "alice", "client-id": None}
    assert (
        alter(
            broker,
            entry({"user": "alice"}, producer_byte_rate=1024, request_percentage=12.5),
            entry(both, consumer_byte_rate=2048),
            entry({"ip": "10.0.0.1"}, connection_creation_rate=5),
        )
        == [NONE] * 3
    )
    alice, of_both, ip = (
        {(("user", "alice"),): {"producer_byte_rate": 1024.0, "request_percentage": 12.5}},
        {(("user", "alice"), ("client-id", None)): {"consumer_byte_rate": 2048.0}},
        {(("ip", "10.0.0.1"),): {"connection_creation_rate": 5.0}},
    )
    assert described(broker) == alice | of_both | ip
    assert described(broker, ("user", 0, "alice")) == alice | of_both
    assert described(broker, ("user", 0, "alice"), strict=True) == alice
    assert described(broker, ("user", 2, None), ("client-id", 1, None)) == of_both
    assert described(broker, ("user", 1, None)) == {}
    assert described(broker, ("ip", 2, None)) == ip
    assert alter(broker, entry({"user": "alice"}, producer_byte_rate=None, request_percentage=None)) == [NONE]
    assert described(broker, ("user", 2, None)) == of_both


@pytest.mark.parametrize(
    "wrong",
    [
        entry({}, producer_byte_rate=1),
        entry({"planet": "x"}, producer_byte_rate=1),
        entry({"user": ""}, producer_byte_rate=1),
        entry({"user": "a", "ip": "10.0.0.1"}, producer_byte_rate=1),
        entry({"ip": "10.0.0.x"}, connection_creation_rate=1),
        entry({"user": "a"}, connection_creation_rate=1),
        entry({"user": "a"}, producer_byte_rate=0),
        entry({"user": "a"}, producer_byte_rate=0.5),
        entry({"user": "a"}, request_percentage=float("nan")),
        entry({"user": "a"}, bytes=1),
        EntryData(entity=[EntityData(entity_type="user", entity_name="a")], ops=[OpData(key="x", remove=True)] * 2),
    ],
)
def test_a_wrong_quota_is_refused_and_the_others_are_set(wrong: EntryData) -> None:
    broker, _ = limited()
    for version in (0, 1):
        right = entry({"user": "b"}, producer_byte_rate=version + 1)
        assert alter(broker, wrong, right, version=version) == [INVALID, NONE]
        assert described(broker) == {(("user", "b"),): {"producer_byte_rate": version + 1.0}}


def test_of_an_entity_that_is_named_twice_the_first_counts_and_the_answer_is_an_error() -> None:
    broker, _ = limited()
    entries = [entry({"user": "a"}, producer_byte_rate=1), entry({"user": "a"}, producer_byte_rate=2)]
    assert alter(broker, *entries) == [INVALID]
    assert described(broker) == {(("user", "a"),): {"producer_byte_rate": 1.0}}


def test_the_audit_log_tells_who_asks_for_a_change(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker()
    with caplog.at_level(logging.INFO, "exacta.audit"):
        alter(broker, entry(USER, producer_byte_rate=1000.0))
        alter(broker, entry(USER, producer_byte_rate=2000.0), validate_only=True)
    asked = [each.getMessage() for each in caplog.records if "asks" in each.getMessage()]
    assert [each.partition(" from ")[0] for each in asked] == ["User:ANONYMOUS asks"]
    assert asked[0].endswith(" to change quotas")


def test_nothing_is_set_where_it_is_only_validated() -> None:
    broker, _ = limited()
    assert alter(broker, entry(USER, producer_byte_rate=1), validate_only=True) == [NONE]
    assert alter(broker, entry(USER, producer_byte_rate=0), validate_only=True) == [INVALID]
    assert described(broker) == {}


# --- bytes --------------------------------------------------------------------------------------------------------


def test_a_writer_is_answered_first_and_waits_then() -> None:
    broker, client = limited(producer_byte_rate=1_000)
    answer = broker.ask(client, sized(client, 800), 9)
    assert answer.throttle_time_ms == 0
    answer = broker.ask(client, sized(client, 2_700), 9)
    assert (answer.responses[0].partition_responses[0].error_code, answer.throttle_time_ms) == (NONE, 2_500)
    client.send(MetadataRequest(topics=[]), 9)
    broker.settle()
    broker.pass_time(2_499)
    assert client.answers() == []
    broker.pass_time(1)
    [(_, answer)] = client.answers()
    assert answer.throttle_time_ms == 0


def test_what_was_sent_ahead_waits_as_well_and_is_not_lost() -> None:
    broker, client = limited(producer_byte_rate=1_000)
    for _ in range(4):
        client.send(sized(client, 2_000), 9)
    broker.settle()
    expected = [1_000, 2_000, 2_000, 2_000]
    for waits in expected:
        [(_, answer)] = client.answers()
        assert answer.throttle_time_ms == waits
        broker.pass_time(waits)
    assert client.answers() == []


def test_a_writer_without_answers_is_muted_alone() -> None:
    broker, client = limited(producer_byte_rate=1_000)
    request = sized(client, 3_000)
    request.acks = 0
    client.send(request, 9)
    client.send(MetadataRequest(topics=[]), 9)
    broker.pass_time(1_999)
    assert client.answers() == []
    broker.pass_time(1)
    assert len(client.answers()) == 1


@pytest.mark.parametrize("count", [1, 5])
def test_who_shares_a_quota_stays_within_it_over_ten_seconds_and_a_neighbour_is_not_slowed(count: int) -> None:
    rate, size = 10_000, 1_000
    broker, _ = limited({"client-id": "c"}, producer_byte_rate=rate)
    clients = [broker.connect() for _ in range(count)]
    neighbour = broker.connect()
    neighbour.frame = lambda message, version: _named(neighbour, message, version)  # type: ignore[method-assign]
    sent: list[tuple[int, int]] = []
    request, others = sized(clients[0], size), sized(neighbour, size)
    free = dict.fromkeys(range(count), True)
    begun = broker.loop.now_ms
    while broker.loop.now_ms < begun + 30_000:
        for number, client in enumerate(clients):
            if free[number]:
                client.send(request, 9)
                free[number] = False
        broker.settle()
        for number, client in enumerate(clients):
            for _ in client.answers():
                free[number] = True
                sent.append((broker.loop.now_ms, size))
        answer = broker.ask(neighbour, others, 9)
        assert answer.throttle_time_ms == 0
        broker.pass_time(20)
    for at, _ in sent:
        within = sum(each for when, each in sent if at - 10_000 < when <= at)
        assert within <= 1.25 * rate * 10
    assert sum(each for _, each in sent) >= 0.9 * rate * 30


def _named(client: Client, message: Any, version: int) -> bytes:
    client._count += 1
    client._asked[client._count] = (message, version)
    return b"".join(encode_request(message, version, client._count, "neighbour"))


def test_a_reader_gets_what_it_is_due_and_waits_for_the_rest() -> None:
    broker, writer = limited({"client-id": "c"}, consumer_byte_rate=10_000)
    for _ in range(30):
        broker.ask(writer, produce(b"x" * 1_000), 9)
    begun, offset, got = broker.loop.now_ms, 0, 0
    reader, waited = broker.connect(), 0
    while offset < 30:
        answer = broker.ask(reader, fetch(offset), 11)
        records = answer.responses[0].partitions[0].records
        assert records
        got += len(records)
        offset += len(records) // 1_000
        assert got <= 10_000 * 1.1 + 10_000 * (broker.loop.now_ms - begun) / 1000 + 1_100
        waited += answer.throttle_time_ms
        broker.pass_time(answer.throttle_time_ms)
    assert 2_000 <= waited <= 2_500, "of thirty batches a second's worth comes at once"


def test_a_reader_that_shares_a_quota_that_is_used_up_gets_no_records_and_a_time() -> None:
    broker, writer = limited({"client-id": "c"}, consumer_byte_rate=1_000)
    broker.ask(writer, produce(b"x" * 5_000), 9)
    first, second = broker.connect(), broker.connect()
    answer = broker.ask(first, fetch(), 11)
    size = len(answer.responses[0].partitions[0].records)
    assert size > 5_000, "one batch is read in any case (KIP-74)"
    assert answer.throttle_time_ms == size - 1_000
    answer = broker.ask(second, fetch(), 11)
    assert (answer.responses[0].partitions[0].records, answer.throttle_time_ms) == (b"", size - 1_000)
    assert answer.responses[0].partitions[0].high_watermark == 1


# --- time ---------------------------------------------------------------------------------------------------------


def test_requests_take_their_share_of_the_loop_and_wait_for_a_second_at_most() -> None:
    broker, client = limited(request_percentage=10)
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.09  # each look at the clock finds that so much work was done
        return now

    broker.context.quotas._processor_clock = clock
    times = []
    for _ in range(8):
        answer = broker.ask(client, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
        times.append(answer.throttle_time_ms)
        broker.pass_time(answer.throttle_time_ms)
    assert set(times[1:]) == {1_000}


def test_no_clock_is_looked_at_for_who_has_no_such_quota() -> None:
    broker, client = limited(producer_byte_rate=1_000_000)

    def clock() -> float:
        raise AssertionError

    broker.context.quotas._processor_clock = clock
    assert broker.ask(client, produce(b"x"), 9).throttle_time_ms == 0


# --- partitions ---------------------------------------------------------------------------------------------------


def created(broker: Broker, client: Client, version: int, **topics: int) -> tuple[dict[str, int], int]:
    wanted = [CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in topics.items()]
    answer = broker.ask(client, CreateTopicsRequest(topics=wanted), version)
    return {each.name: each.error_code for each in answer.topics}, answer.throttle_time_ms


def test_partitions_are_counted_and_who_owes_some_is_refused_with_a_time() -> None:
    broker, client = limited(controller_mutation_rate=2)
    assert created(broker, client, 6, a=20, b=10, c=1) == ({"a": NONE, "b": NONE, "c": THROTTLED}, 4_000)
    broker.pass_time(4_000)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="a"), DeleteTopicState(name="b")])
    answer = broker.ask(client, request, 6)
    assert [each.error_code for each in answer.responses] == [NONE, THROTTLED]
    assert answer.throttle_time_ms == 10_000
    broker.pass_time(10_000)
    grow = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="b", count=12, assignments=None)])
    assert broker.ask(client, grow, 3).results[0].error_code == NONE
    grow.topics[0].count = 13
    answer = broker.ask(client, grow, 3)
    assert (answer.results[0].error_code, answer.throttle_time_ms) == (THROTTLED, 1_000)


def test_an_older_client_is_served_and_waits_afterwards() -> None:
    broker, client = limited(controller_mutation_rate=2)
    assert created(broker, client, 5, a=20, b=10) == ({"a": NONE, "b": NONE}, 4_000)


def test_what_fails_for_another_reason_costs_nothing() -> None:
    broker, client = limited(controller_mutation_rate=2)
    exists = ErrorCode.TOPIC_ALREADY_EXISTS
    for _ in range(5):
        assert created(broker, client, 6, t=20) == ({"t": exists}, 0)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="nobody")])
    assert broker.ask(client, request, 6).throttle_time_ms == 0
    assert created(broker, client, 6, a=22, b=1) == ({"a": NONE, "b": NONE}, 0)


def test_topics_that_come_by_being_named_are_counted() -> None:
    broker, client = limited(controller_mutation_rate=0.01)
    wanted = [MetadataRequestTopic(name=each) for each in "ab"]
    answer = broker.ask(client, MetadataRequest(topics=wanted, allow_auto_topic_creation=True), 9)
    assert answer.throttle_time_ms > 0


# --- whose quota it is ----------------------------------------------------------------------------------------------


def test_a_quota_that_changes_holds_at_once() -> None:
    broker, client = limited(producer_byte_rate=1_000)
    assert alter(broker, entry({"user": "ANONYMOUS", "client-id": "c"}, producer_byte_rate=1_000_000)) == [NONE]
    assert broker.ask(client, sized(client, 5_000), 9).throttle_time_ms == 0
    assert alter(broker, entry({"user": "ANONYMOUS", "client-id": "c"}, producer_byte_rate=None)) == [NONE]
    assert broker.ask(client, sized(client, 5_000), 9).throttle_time_ms == 4_000


def test_without_quotas_no_request_has_an_account() -> None:
    broker, client = limited()
    broker.ask(client, produce(b"x"), 9)
    assert broker.context.quotas.bucket_count == 0
    assert broker.context.quotas._changes == -1, "nobody was asked"


def test_the_bucket_that_was_used_least_lately_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_quotas, "MOST_BUCKETS", 3)
    broker, _ = limited({"client-id": None}, producer_byte_rate=1_000)
    quotas = broker.context.quotas
    for name in "abcad":
        assert quotas.take(quotas.charge("u", name), QuotaKey.PRODUCER_BYTE_RATE, 900, 0.0) in (0, 800)
    assert quotas.bucket_count == 3
    assert quotas.take(quotas.charge("u", "a"), QuotaKey.PRODUCER_BYTE_RATE, 100, 0.0) == 900
    assert quotas.take(quotas.charge("u", "b"), QuotaKey.PRODUCER_BYTE_RATE, 900, 0.0) == 0
