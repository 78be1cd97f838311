"""The transactional calls against a real broker: what the sink's protocol leans on, fact by fact."""

import pytest

from exacta.client.errors import DeadlineExceeded, ErrorClass, KafkaError
from exacta.client.group_offsets import fetch_offset, fetch_offsets, fetch_stable_offsets
from exacta.client.producer import IdempotentProducer
from exacta.client.routing import Client, Node, UnknownTopic
from exacta.client.topics import LATEST, READ_COMMITTED, READ_UNCOMMITTED, create_topic, list_offsets
from exacta.client.transactions import (
    CommittedOffset,
    Producer,
    TopicPartition,
    add_partitions,
    commit_offset,
    describe_transactions,
    end_transaction,
    end_transactions,
    init_producer_id,
    list_transactions,
)
from exacta.protocol.kafka.errors import ErrorCode
from tests.client.appending import append
from tests.client.described import state_of
from tests.spark.clusters import ELSEWHERE, new_topic, read_committed


def taken(client: Client, name: str, timeout_ms: int = 60_000) -> Producer:
    return init_producer_id(client, name, transaction_timeout_ms=timeout_ms)


def written(client: Client, producer: Producer, topic: str, *values: bytes) -> None:
    writer = IdempotentProducer(client, producer)
    for index, value in enumerate(values):
        append(writer, TopicPartition(topic, index % 2), 1, value, key=b"k")
    writer.flush()
    writer.close()


def code_of(raised: pytest.ExceptionInfo[KafkaError]) -> int:
    return raised.value.code


def test_another_connection_ends_a_transaction_again_and_again(client, bootstrap, topic):
    producer = taken(client, f"{topic}-a")
    written(client, producer, topic, b"1", b"2")
    assert read_committed(bootstrap, topic, settled=False) == []
    for _ in range(2):
        with Client(bootstrap) as other:
            end_transaction(other, producer, commit=True)
    assert sorted(value for _, _, value in read_committed(bootstrap, topic)) == [b"1", b"2"]
    with pytest.raises(KafkaError) as refused:
        end_transaction(client, producer, commit=False)
    assert code_of(refused) == ErrorCode.INVALID_TXN_STATE


def test_taking_over_aborts_and_fences(client, bootstrap, topic):
    old = taken(client, f"{topic}-a")
    written(client, old, topic, b"lost")
    new = taken(client, f"{topic}-a")
    assert new.producer_epoch > old.producer_epoch
    with pytest.raises(KafkaError) as refused:
        end_transaction(client, old, commit=True)
    assert refused.value.fenced
    assert refused.value.error_class is ErrorClass.FATAL
    with pytest.raises(KafkaError) as zombie:
        written(client, old, topic, b"zombie")
    assert zombie.value.fenced
    written(client, new, topic, b"kept")
    end_transaction(client, new, commit=True)
    assert [value for _, _, value in read_committed(bootstrap, topic)] == [b"kept"]


def test_taking_over_from_one_incarnation_only(client, topic):
    first = taken(client, f"{topic}-a")
    written(client, first, topic, b"lost")
    end_transaction(client, first, commit=False)
    second = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000, expected=first)
    assert second.producer_epoch > first.producer_epoch
    third = taken(client, f"{topic}-a")

    def check_that_the_outdated_are_refused():
        for outdated in (first, second):
            with pytest.raises(KafkaError) as refused:
                init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000, expected=outdated)
            assert refused.value.fenced
            with pytest.raises(KafkaError) as refused:
                end_transaction(client, outdated, commit=False)
            assert refused.value.fenced

    check_that_the_outdated_are_refused()
    written(client, third, topic, b"kept")
    if not ELSEWHERE:  # Apache Kafka refuses, and aborts the transaction of the third
        check_that_the_outdated_are_refused()
    end_transaction(client, third, commit=True)


def test_an_offset_in_a_transaction_is_unstable_until_its_end(client, topic):
    at, group = TopicPartition(topic, 0), f"{topic}-group"
    producer = taken(client, f"{topic}-a")
    commit_offset(client, producer, group, at, CommittedOffset(7, "text"))
    assert fetch_offset(client, group, at, stable=False) is None
    with pytest.raises(KafkaError) as unstable:
        fetch_offset(client, group, at, stable=True)
    assert code_of(unstable) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert fetch_stable_offsets(client, [group, f"{group}-none"], at) == {f"{group}-none": None}
    end_transaction(client, producer, commit=True)
    assert fetch_offset_when_stable(client, group, at) == CommittedOffset(7, "text")
    second = taken(client, f"{topic}-a")
    commit_offset(client, second, group, at, CommittedOffset(8, "never"))
    end_transaction(client, second, commit=False)
    assert fetch_offset_when_stable(client, group, at) == CommittedOffset(7, "text")


def fetch_offset_when_stable(client, group, at):
    """Ask until the answer is final: Apache Kafka ends a transaction in groups a moment after it said so."""
    deadline = client.deadline(10_000)
    while not deadline.passed:
        found = fetch_stable_offsets(client, [group], at)
        if group in found:
            return found[group]
    raise AssertionError("never stable")


def test_an_empty_transaction_cannot_be_committed(client, topic):
    producer = taken(client, f"{topic}-a")
    with pytest.raises(KafkaError) as refused:
        end_transaction(client, producer, commit=True)
    assert code_of(refused) == ErrorCode.INVALID_TXN_STATE


def test_many_are_ended_listed_and_described_at_once(client, bootstrap, topic):
    producers = [taken(client, f"{topic}-{index}") for index in range(9)]
    assert list_transactions(client, f"{topic}-") == []
    for producer in producers[:8]:
        written(client, producer, topic, producer.transactional_id.encode())
    names = [producer.transactional_id for producer in producers]
    assert list_transactions(client, f"{topic}-") == names[:8]
    described = describe_transactions(client, [*names, f"{topic}-none"])
    found = {name: each for name, each in described.items() if each is not None}
    assert [found[name].state for name in names] == ["Ongoing"] * 8 + ["Empty"]
    assert [found[name].is_open for name in names] == [True] * 8 + [False]
    assert (found[names[0]].producer_id, found[names[0]].producer_epoch) == producers[0][1:]
    assert found[names[0]].partitions >= {TopicPartition(topic, 0)}
    assert described[f"{topic}-none"] is None
    outcome = end_transactions(client, producers, commit=True)
    assert [error for error in outcome.values() if error is not None] == [outcome[producers[8]]]
    refused = outcome[producers[8]]
    assert refused is not None
    assert refused.code == ErrorCode.INVALID_TXN_STATE
    assert {value.decode() for _, _, value in read_committed(bootstrap, topic)} == set(names[:8])


def test_a_transaction_left_alone_is_aborted_by_the_broker(client, topic):
    producer = taken(client, f"{topic}-a", timeout_ms=500)
    written(client, producer, topic, b"late")
    deadline = client.deadline(30_000)
    # The broker looks every so often; there is nothing to wait on but its answer.
    while state_of(client, producer.transactional_id) == "Ongoing" and not deadline.passed:
        fetch_offset(client, "nobody", TopicPartition(topic, 0), stable=False)
    with pytest.raises(KafkaError) as refused:
        end_transaction(client, producer, commit=True)
    assert refused.value.fenced or code_of(refused) == ErrorCode.INVALID_TXN_STATE


def test_adding_twice_changes_nothing(client, bootstrap, topic):
    producer = taken(client, f"{topic}-a")
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    add_partitions(client, producer, partitions)
    add_partitions(client, producer, partitions)
    written(client, producer, topic, b"1")
    end_transaction(client, producer, commit=True)
    assert [value for _, _, value in read_committed(bootstrap, topic)] == [b"1"]


def test_offsets_of_the_two_isolation_levels(client, topic):
    partition = TopicPartition(topic, 0)
    producer = taken(client, f"{topic}-a")
    written(client, producer, topic, b"open")
    assert list_offsets(client, [partition], LATEST, isolation_level=READ_COMMITTED) == {partition: 0}
    assert list_offsets(client, [partition], LATEST, isolation_level=READ_UNCOMMITTED) == {partition: 1}
    end_transaction(client, producer, commit=False)


def test_topics(client):
    topic = new_topic(client.bootstrap, 3)
    assert create_topic(client, topic, partitions=3) is False
    assert client.partitions([topic]) == {topic: 3}
    with pytest.raises(UnknownTopic, match="topic 'nowhere' does not exist on"):
        client.partitions(["nowhere"])


def test_a_time_out_above_the_brokers_is_refused_at_once(client, topic):
    with pytest.raises(KafkaError) as refused:
        taken(client, f"{topic}-a", timeout_ms=2_000_000_000)
    assert code_of(refused) == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_nobody_there_is_given_up_at_the_deadline():
    with pytest.raises(DeadlineExceeded, match=r"gave up after 0\.2 s: cannot connect to 127\.0\.0\.1:1"):
        init_producer_id(Client("127.0.0.1:1", call_timeout_ms=200), "a", transaction_timeout_ms=1000)


def test_a_broker_that_has_left_is_not_waited_for_but_the_others_are_asked_again(client, topic, monkeypatch):
    """Metadata lists a broker that was killed for some seconds more; its transactions move to another."""
    producer = taken(client, f"{topic}-left")
    written(client, producer, topic, b"1", b"2")
    there = client.nodes()
    lists = [list(there), [4711, *there]]
    monkeypatch.setattr(client, "nodes", lambda _: lists.pop())
    asked = []
    call = client.call

    def noted(route, *given, **named):
        asked.append(route)
        return call(route, *given, **named)

    monkeypatch.setattr(client, "call", noted)
    assert list_transactions(client, f"{topic}-left") == [f"{topic}-left"]
    again = [Node(node_id) for node_id in reversed(there)]
    assert asked == [*again, Node(4711), *again]
    monkeypatch.undo()
    end_transaction(client, producer, commit=False)
    assert list_transactions(client, f"{topic}-left") == []
    assert list_transactions(client, f"{topic}-left", states=()) == [f"{topic}-left"]


def test_all_that_a_group_has_committed(client, topic):
    producer = taken(client, f"{topic}-all")
    assert fetch_offsets(client, f"{topic}-all") == {}
    for index in range(2):
        commit_offset(
            client, producer, f"{topic}-all", TopicPartition(topic, index), CommittedOffset(index, f"m{index}")
        )
    end_transaction(client, producer, commit=True)
    expected = {TopicPartition(topic, index): CommittedOffset(index, f"m{index}") for index in range(2)}
    # Apache Kafka answers before it has ended a transaction everywhere; 3.x then knows of no offset at all.
    while any(f"{topic}-all" not in fetch_stable_offsets(client, [f"{topic}-all"], at) for at in expected):
        pass
    assert fetch_offsets(client, f"{topic}-all") == expected
