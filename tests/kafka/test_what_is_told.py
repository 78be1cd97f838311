"""What is told of a resource to a client that may do something else with it: as Apache Kafka tells it.

The judge is tests/differential/test_access.py; these are the smallest tests of what it has found.
"""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exacta.ports.authorizer import AllowAll, Operation, ResourceKind
from exacta.protocol.kafka.apis import API, ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k03_metadata,
    k15_describe_groups,
    k20_delete_topics,
    k47_offset_delete,
    k69_consumer_group_describe,
)
from tests.kafka.access_cases import CASES
from tests.kafka.access_requests import Names
from tests.kafka.access_rules import HIDDEN, SEEN, TOPIC, about, but_hidden, codes, nothing, rule
from tests.kafka.access_rules import Rules as RulesOf
from tests.kafka.wire import Front, Wire

Furnished = tuple[Front, Wire, Names]
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def only(broker: Front, *rights: tuple[Operation, ResourceKind]) -> None:
    rule(broker, RulesOf(lambda operation, resource: (operation, resource.kind) in rights))


@pytest.mark.parametrize("asked", [True, False])
def test_what_a_client_may_do_on_a_group_is_told_in_bits(half_open: Furnished, asked: bool) -> None:
    broker, wire, both = half_open
    rule(broker, AllowAll())
    joining = msgspec.structs.replace(both, groups=["c"], topics=both.topics[:1])
    wire.ask(CASES[ApiKey.CONSUMER_GROUP_HEARTBEAT].build(1, joining), 1)

    def told() -> set[int]:
        described = wire.ask(
            k15_describe_groups.DescribeGroupsRequest(groups=list(both.groups), include_authorized_operations=asked), 5
        )
        consumers = wire.ask(
            k69_consumer_group_describe.ConsumerGroupDescribeRequest(
                group_ids=["c"], include_authorized_operations=asked
            ),
            0,
        )
        return {each.authorized_operations for each in (*described.groups, *consumers.groups)}

    everything = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    assert told() == {everything if asked else -0x8000_0000}
    only(
        broker,
        (Operation.DESCRIBE, ResourceKind.GROUP),
        (Operation.DELETE, ResourceKind.GROUP),
        (Operation.DESCRIBE, ResourceKind.TOPIC),
    )
    assert told() == {1 << 6 | 1 << 8 if asked else -0x8000_0000}


def test_nothing_is_told_of_a_group_that_a_client_may_not_describe(half_open: Furnished) -> None:
    _, wire, both = half_open
    asked = k15_describe_groups.DescribeGroupsRequest(groups=list(both.groups), include_authorized_operations=True)
    assert about(wire.ask(asked, 5), f"{HIDDEN}-g").authorized_operations == -0x8000_0000


def test_operations_on_a_topic_that_is_not_there(half_open: Furnished) -> None:
    broker, wire, _ = half_open
    only(broker, (Operation.DESCRIBE, ResourceKind.TOPIC), (Operation.WRITE, ResourceKind.TOPIC))
    asked = k03_metadata.MetadataRequest(
        topics=[k03_metadata.MetadataRequestTopic(name="absent")],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    [topic] = wire.ask(asked, 9).topics
    assert (topic.error_code, topic.topic_authorized_operations) == (UNKNOWN, 1 << 4 | 1 << 8)


@pytest.mark.parametrize("version", [5, 6])
def test_who_may_describe_a_topic_is_told_that_there_is_none_to_delete(half_open: Furnished, version: int) -> None:
    broker, wire, both = half_open
    names = msgspec.structs.replace(both, topics=["absent", f"{SEEN}-t"])

    def told() -> dict[str, int]:
        return {
            each.name: each.error_code
            for each in wire.ask(CASES[ApiKey.DELETE_TOPICS].build(version, names), version).responses
        }

    only(broker, (Operation.DESCRIBE, ResourceKind.TOPIC))
    assert told() == {"absent": UNKNOWN, f"{SEEN}-t": TOPIC}
    only(broker, (Operation.READ, ResourceKind.TOPIC))
    assert told() == {"absent": TOPIC, f"{SEEN}-t": TOPIC}


def test_who_may_describe_a_topic_is_told_its_name_where_it_may_not_delete_it(half_open: Furnished) -> None:
    broker, wire, both = half_open
    asked = k20_delete_topics.DeleteTopicsRequest(
        topics=[k20_delete_topics.DeleteTopicState(topic_id=both.ids[f"{SEEN}-t"])]
    )
    for operation, name in ((Operation.DESCRIBE, f"{SEEN}-t"), (Operation.READ, None)):
        only(broker, (operation, ResourceKind.TOPIC))
        [answer] = wire.ask(asked, 6).responses
        assert (answer.error_code, answer.name) == (TOPIC, name)


def test_a_topic_that_is_not_there_beside_one_that_is_refused(half_open: Furnished) -> None:
    _, wire, both = half_open
    names = msgspec.structs.replace(both, topics=[f"{SEEN}-t", f"{HIDDEN}-t", "absent"])
    answer = wire.ask(CASES[ApiKey.ADD_PARTITIONS_TO_TXN].build(3, names), 3)
    wanted: dict[str, Any] = {f"{SEEN}-t": ErrorCode.OPERATION_NOT_ATTEMPTED, f"{HIDDEN}-t": TOPIC, "absent": UNKNOWN}
    assert {name: codes(about(answer, name)) for name in wanted} == {name: {code} for name, code in wanted.items()}


def test_a_group_that_is_not_there_is_told_before_topics_that_are_refused(half_open: Furnished) -> None:
    broker, wire, both = half_open
    asked = CASES[ApiKey.OFFSET_DELETE].build(0, msgspec.structs.replace(both, groups=["absent"]))
    assert isinstance(asked, k47_offset_delete.OffsetDeleteRequest)
    only(broker, (Operation.DELETE, ResourceKind.GROUP))
    answers = [wire.ask(asked, 0)]
    rule(broker, RulesOf(but_hidden))
    answers.append(wire.ask(asked, 0))
    assert [(each.error_code, each.topics) for each in answers] == [(ErrorCode.GROUP_ID_NOT_FOUND, [])] * 2


BY_ID = {ApiKey.METADATA: 12, ApiKey.PRODUCE: 13, ApiKey.FETCH: 13, ApiKey.DELETE_TOPICS: 6}
"""The APIs by which everybody can try whether there is a topic with an id."""


def test_what_everybody_is_told(half_open: Furnished) -> None:
    broker, wire, both = half_open
    rule(broker, RulesOf(nothing))
    there, absent = both.ids[f"{HIDDEN}-t"], bytes([7]) * 16
    for key, version in BY_ID.items():
        names = msgspec.structs.replace(both, topics=["t"])
        asked = CASES[key].build(version, names)
        [array] = [field for field in ("topics", "topic_data") if getattr(asked, field, None)]
        for topic_id, code in ((there, TOPIC), (absent, ErrorCode.UNKNOWN_TOPIC_ID)):
            [topic] = getattr(asked, array)
            setattr(topic, "name" if hasattr(topic, "name") else "topic", "" if key is ApiKey.PRODUCE else None)
            topic.topic_id = topic_id
            assert codes(wire.ask(asked, version)) == {code}, key
    page = (Path(__file__).parents[2] / "docs/how-to/permissions.md").read_text()
    told = re.search(r"^\| whether there is a topic with an id .* \| (.*) \|$", page, re.MULTILINE)
    assert told is not None
    assert told[1].split(", ") == [API[key].name for key in BY_ID]
