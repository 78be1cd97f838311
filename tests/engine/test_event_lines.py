"""The lines of the log about events: told once the event is durable, with names and numbers that an operator needs."""

import logging
from collections.abc import Callable, Iterator

import pytest

from exacta.core.commands import (
    AlterClientQuotas,
    AlterScramKeys,
    CommitOffsets,
    CreateAcls,
    CreateTopic,
    DeleteAcls,
    DeleteGroup,
    DeleteTopic,
    OffsetToCommit,
    SetBrokerConfigs,
)
from exacta.core.ids import PartitionId
from exacta.core.state.partition import Partition
from exacta.core.values.acl import AclFilter, Pattern
from exacta.core.values.limits import Limits
from exacta.core.values.quotas import EntityType, QuotaAlteration, QuotaKey, entity_of
from exacta.core.values.scram import ScramAlteration, ScramMechanism
from exacta.engine.upkeep_lines import RetentionRun, tell_of_compaction
from exacta.ports.log import Counts
from tests.core.access.values import acl, alteration, key
from tests.engine.producer import Producer
from tests.engine.rig import Rig

Lines = Callable[[], list[str]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Lines]:
    """Return the lines since the last call."""

    def taken() -> list[str]:
        found = [f"{each.levelname} {each.name}: {each.getMessage()}" for each in caplog.records]
        caplog.clear()
        return found

    with caplog.at_level(logging.INFO, "exacta"):
        yield taken


def test_a_topic_that_is_made_is_told_once_that_is_durable(rig: Rig, lines: Lines) -> None:
    lines()
    rig.submit(CreateTopic(topic="u", topic_id=b"u" * 16, partition_count=3, configs={"retention.ms": "5"}))
    assert lines() == []
    rig.settle()
    assert lines() == ["INFO exacta.topics: topic 'u' was made, with partitions=3, retention.ms=5"]
    rig.ask(DeleteTopic(topic="u"))
    assert lines() == ["INFO exacta.topics: topic 'u' was deleted"]


def test_options_that_are_set_while_the_broker_runs_are_told(rig: Rig, lines: Lines) -> None:
    lines()
    rig.ask(SetBrokerConfigs(broker_id="", configs={"log.retention.ms": "5"}))
    rig.ask(SetBrokerConfigs(broker_id="0", configs={"fetch.max.bytes": "2000"}))
    rig.ask(SetBrokerConfigs(broker_id="", configs={}))
    assert lines() == [
        "INFO exacta.server: the options that are set at run time for all brokers: log.retention.ms=5",
        "INFO exacta.server: the options that are set at run time for broker 0: fetch.max.bytes=2000",
        "INFO exacta.server: the options that are set at run time for all brokers: none",
    ]


def test_access_rules_that_come_and_go_are_told(rig: Rig, lines: Lines) -> None:
    lines()
    rig.ask(CreateAcls(acls=(acl(), acl(pattern=Pattern.PREFIXED, host="10.0.0.1", allows=False))))
    rig.ask(DeleteAcls(filters=(AclFilter(allows=False),)))
    of_a = "User:alice may Read Literal Topic 'a'"
    denied = "User:alice may not Read Prefixed Topic 'a' from 10.0.0.1"
    assert lines() == [
        f"INFO exacta.audit: access rules were made: {of_a}, {denied}",
        f"INFO exacta.audit: access rules were deleted: {denied}",
    ]


def test_every_access_rule_is_named(rig: Rig, lines: Lines) -> None:
    lines()
    rig.ask(CreateAcls(acls=tuple(acl(name=f"topic-{number}") for number in range(250))))
    told = lines()
    assert len(told) == 3
    assert all(f"'topic-{number}'" in "\n".join(told) for number in range(250))


def test_users_are_told_of_without_their_keys(rig: Rig, lines: Lines) -> None:
    lines()
    for mechanism in ScramMechanism:
        rig.ask(AlterScramKeys(alterations=(alteration("alice", key(mechanism)),)))
    for mechanism in ScramMechanism:
        rig.ask(AlterScramKeys(alterations=(ScramAlteration("alice", mechanism),)))
    assert lines() == [
        "INFO exacta.audit: the keys of user 'alice' were changed, who logs in by SCRAM-SHA-256",
        "INFO exacta.audit: the keys of user 'alice' were changed, who logs in by SCRAM-SHA-256, SCRAM-SHA-512",
        "INFO exacta.audit: the keys of user 'alice' were changed, who logs in by SCRAM-SHA-512",
        "INFO exacta.audit: user 'alice' was deleted",
    ]


def test_quotas_that_come_and_go_are_told(rig: Rig, lines: Lines) -> None:
    lines()
    entity = entity_of({EntityType.USER: "alice", EntityType.CLIENT_ID: None})
    for value in (1_000_000.0, None):
        alteration = QuotaAlteration(entity, {QuotaKey.PRODUCER_BYTE_RATE: value})
        rig.ask(AlterClientQuotas(alterations=(alteration,)))
    assert lines() == [
        "INFO exacta.audit: the quotas of user 'alice' and any other client-id are producer_byte_rate=1e+06",
        "INFO exacta.audit: the quotas of user 'alice' and any other client-id are none",
    ]


def test_a_transaction_that_times_out_is_told_with_its_partitions_and_its_age(rig: Rig, lines: Lines) -> None:
    producer = Producer(rig, "orders-1")
    producer.add(0)
    producer.write(b"x")
    rig.settle()
    lines()
    rig.loop.pass_time(60_000)
    aborted, fenced = lines()
    assert aborted == (
        "WARNING exacta.transactions: the transaction of 'orders-1' timed out and was aborted: it was open for 60.0 s "
        "in t-0"
    )
    assert fenced == (
        f"INFO exacta.transactions: the producer of 'orders-1' (producer id {producer.pair[0]}, epoch 0) was fenced: "
        "its transaction timed out"
    )


def test_a_producer_is_fenced_by_a_new_instance_and_nothing_is_said_of_the_first(rig: Rig, lines: Lines) -> None:
    lines()
    first = Producer(rig, "orders-1")
    assert lines() == []
    Producer(rig, "orders-1")
    assert lines() == [
        f"INFO exacta.transactions: the producer of 'orders-1' (producer id {first.pair[0]}, epoch 0) was fenced: it "
        "has a new instance"
    ]


def test_a_group_that_expires_is_told_otherwise_than_one_that_is_deleted(rig: Rig, lines: Lines) -> None:
    for group in ("deleted", "unused"):
        offsets = (OffsetToCommit(topic="t", partition=0, offset=0),)
        rig.submit(CommitOffsets(group_id=group, offsets=offsets))
    rig.submit(DeleteGroup(group_id="deleted"))
    rig.settle()
    assert lines() == ["INFO exacta.groups: group 'deleted' was deleted with its offsets"]
    rig.loop.pass_time(Limits().offsets_retention_ms)
    rig.settle()
    assert lines() == [
        "INFO exacta.groups: nobody has used group 'unused' for too long: it is forgotten with its offsets"
    ]


def test_nothing_is_made_of_lines_that_nobody_reads(rig: Rig, caplog: pytest.LogCaptureFixture, lines: Lines) -> None:
    """A line that was kept would be told once somebody reads."""
    with caplog.at_level(logging.WARNING, "exacta"):
        rig.submit(CreateTopic(topic="u", topic_id=b"u" * 16, partition_count=3))
    lines()
    rig.settle()
    assert lines() == []


def test_a_run_of_retention_is_one_line_once_all_is_durable(lines: Lines) -> None:
    counts = Counts()
    run = RetentionRun(counts)
    for _ in range(2):
        run.begins()
        counts.trims, counts.trimmed_records = counts.trims + 1, counts.trimmed_records + 10
    run.durable()
    run.ends()
    assert lines() == []
    run.durable()
    assert lines() == ["INFO exacta.retention: retention has deleted offsets=20 in partitions=2"]
    RetentionRun(counts).ends()
    assert lines() == []


def test_a_compaction_names_some_of_its_partitions(lines: Lines) -> None:
    tell_of_compaction([Partition(PartitionId(number), "t", number) for number in range(7)], 1.25)
    assert lines() == ["INFO exacta.compaction: compaction of t-0, t-1, t-2, t-3, t-4 and 2 more took 1.2 s"]
