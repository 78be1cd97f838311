"""Nobody writes into the cluster's own topics, and they take no room from the others (decision 0029)."""

import pytest

from exacta.core.apply import apply
from exacta.core.commands import AddPartitions, AppendBatch, CreatePartitions, CreateTopic, DeleteRecords
from exacta.core.decide import decide
from exacta.core.ids import Offset, ProducerEpoch, ProducerId
from exacta.core.log import append
from exacta.core.rejections import Rejection
from exacta.core.replies import Appended, RecordsDeleted, TopicCreatedReply
from exacta.core.state.state import State
from exacta.core.values.internal_topics import GROUP_OFFSETS, INTERNAL_TOPICS, TRANSACTION_STATE
from exacta.core.values.limits import Limits


def run(state: State, command: object) -> object:
    outcome = decide(state, command, 1_000)  # type: ignore[arg-type]
    for event in outcome.events:
        apply(state, event)
    return outcome.reply


def create(topic: str, partition_count: int) -> CreateTopic:
    return CreateTopic(topic=topic, topic_id=topic.encode().ljust(16)[:16], partition_count=partition_count)


def write(topic: str) -> AppendBatch:
    return AppendBatch(
        topic=topic,
        partition=0,
        record_count=1,
        size=10,
        max_timestamp_ms=1,
    )


@pytest.fixture
def state() -> State:
    state = State(limits=Limits(max_partitions=3, max_partitions_per_topic=50))
    for topic in sorted(INTERNAL_TOPICS):
        assert isinstance(run(state, create(topic, 50)), TopicCreatedReply)
    return state


@pytest.mark.parametrize("topic", sorted(INTERNAL_TOPICS))
def test_nobody_writes_into_them(state: State, topic: str) -> None:
    assert run(state, write(topic)) is Rejection.INTERNAL_TOPIC
    named = AddPartitions(
        transactional_id="x", producer_id=ProducerId(0), producer_epoch=ProducerEpoch(0), partitions=((topic, 0),)
    )
    assert run(state, named) is Rejection.INTERNAL_TOPIC
    delete = DeleteRecords(topic=topic, partition=0, before_offset=-1, allowed=False)
    assert run(state, delete) is Rejection.INTERNAL_TOPIC


def test_they_take_no_room_from_others(state: State) -> None:
    assert isinstance(run(state, create("t", 2)), TopicCreatedReply)
    assert run(state, create("u", 2)) is Rejection.INVALID_PARTITIONS
    assert run(state, CreatePartitions(topic=TRANSACTION_STATE, total_count=51)) is Rejection.INVALID_PARTITIONS
    assert isinstance(run(state, create("v", 1)), TopicCreatedReply)


def test_retention_frees_what_an_older_version_has_taken(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(append, "INTERNAL_TOPICS", frozenset())
        assert isinstance(run(state, write(GROUP_OFFSETS)), Appended)
    assert run(state, write(GROUP_OFFSETS)) is Rejection.INTERNAL_TOPIC
    answer = run(state, DeleteRecords(topic=GROUP_OFFSETS, partition=0, before_offset=1))
    assert answer == RecordsDeleted(log_start_offset=Offset(1))
