"""CreateAcls, DescribeAcls and DeleteAcls: access rules over the wire, by Kafka's numbers."""

import logging
from typing import Any

import pytest

from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.values.acl import Operation, Pattern, ResourceKind, Terms
from exacta.kafka.acl_words import KINDS, PATTERNS, PERMISSIONS
from exacta.kafka.authorized_operations import NUMBERS
from exacta.kafka.handlers.k31_delete_acls import MOST_FILTERS, MOST_FILTERS_IN_ALL
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k29_describe_acls import DescribeAclsRequest
from exacta.protocol.kafka.messages.k30_create_acls import AclCreation, CreateAclsRequest
from exacta.protocol.kafka.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest
from exacta.security.authorizer import AclAuthorizer
from tests.kafka.by_hand import Broker, Client

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
DENY, ALLOW = 2, 3
TOPIC, READ, DESCRIBE = 2, 3, 8
VERSIONS = (1, 2, 3)
ME = "User:ANONYMOUS"
ON = {"authorizer.class.name": STANDARD_AUTHORIZER}


def closed(**options: Any) -> tuple[Broker, Client]:
    broker = Broker(**ON | {"super.users": ME} | options)
    return broker, broker.connect()


def creation(**given: Any) -> AclCreation:
    usual: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": "a",
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(**usual | given)


def every(**given: Any) -> dict[str, Any]:
    usual = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return usual | given


def create(broker: Broker, client: Client, *creations: AclCreation, version: int = 3) -> list[int]:
    answer = broker.ask(client, CreateAclsRequest(creations=list(creations)), version)
    for each in answer.results:
        assert bool(each.error_message) is (each.error_code == ErrorCode.INVALID_REQUEST)
    return [each.error_code for each in answer.results]


def described(broker: Broker, client: Client, version: int = 3, **given: Any) -> set[tuple[Any, ...]]:
    answer = broker.ask(client, DescribeAclsRequest(**every(**given)), version)
    assert answer.error_code == ErrorCode.NONE
    patterns = [(each.resource_type, each.resource_name, each.pattern_type) for each in answer.resources]
    assert len(patterns) == len({*patterns}), "the rules for one pattern come together"
    return {
        (*pattern, acl.principal, acl.host, acl.operation, acl.permission_type)
        for pattern, each in zip(patterns, answer.resources, strict=True)
        for acl in each.acls
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_rules_are_made_described_and_deleted(version: int) -> None:
    broker, client = closed()
    rules = [
        creation(),
        creation(resource_pattern_type=PREFIXED, permission_type=DENY, host="10.0.0.1"),
        creation(resource_type=3, principal="User:bob", operation=2),
    ]
    assert create(broker, client, *rules, version=version) == [ErrorCode.NONE] * 3
    literal = (TOPIC, "a", LITERAL, "User:alice", "*", READ, ALLOW)
    prefixed = (TOPIC, "a", PREFIXED, "User:alice", "10.0.0.1", READ, DENY)
    group = (3, "a", LITERAL, "User:bob", "*", 2, ALLOW)
    assert described(broker, client, version) == {literal, prefixed, group}
    assert described(broker, client, version, resource_type_filter=TOPIC, resource_name_filter="ab") == set()
    matching = {"resource_type_filter": TOPIC, "resource_name_filter": "ab", "pattern_type_filter": MATCH}
    assert described(broker, client, version, **matching) == {prefixed}
    filters = [DeleteAclsFilter(**every(**matching)), DeleteAclsFilter(**every(principal_filter="User:nobody"))]
    answer = broker.ask(client, DeleteAclsRequest(filters=filters), version)
    (deleted,), nothing = (each.matching_acls for each in answer.filter_results)
    assert nothing == []
    found = (deleted.resource_type, deleted.resource_name, deleted.pattern_type, deleted.principal, deleted.host)
    assert (*found, deleted.operation, deleted.permission_type) == prefixed
    assert described(broker, client, version) == {literal, group}


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_type": 0},
        {"resource_type": ANY},
        {"resource_type": 8},
        {"resource_name": ""},
        {"resource_type": 4, "resource_name": "another"},
        {"resource_pattern_type": ANY},
        {"resource_pattern_type": MATCH},
        {"operation": ANY},
        {"operation": 16},
        {"permission_type": ANY},
        {"principal": "alice"},
        {"host": ""},
    ],
)
def test_a_rule_that_cannot_be_hinders_no_other(wrong: dict[str, Any]) -> None:
    broker, client = closed()
    codes = create(broker, client, creation(), creation(**wrong), creation(operation=4))
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert len(described(broker, client)) == 2


@pytest.mark.parametrize("wrong", [{"pattern_type_filter": 0}, {"operation": 0}, {"permission_type": 9}])
def test_a_filter_of_unknown_words_is_refused(wrong: dict[str, Any]) -> None:
    broker, client = closed()
    create(broker, client, creation())
    answer = broker.ask(client, DescribeAclsRequest(**every(**wrong)), 3)
    assert (answer.error_code, answer.resources) == (ErrorCode.INVALID_REQUEST, [])
    filters = [DeleteAclsFilter(**every(**wrong)), DeleteAclsFilter(**every(host_filter="elsewhere"))]
    answer = broker.ask(client, DeleteAclsRequest(filters=filters), 3)
    assert [each.error_code for each in answer.filter_results] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert len(described(broker, client)) == 1


def test_without_an_authorizer_there_are_no_rules() -> None:
    broker = Broker()
    client = broker.connect()
    answer = broker.ask(client, CreateAclsRequest(creations=[creation()] * 2), 3)
    assert [each.error_code for each in answer.results] == [ErrorCode.SECURITY_DISABLED] * 2
    assert broker.ask(client, DescribeAclsRequest(**every()), 3).error_code == ErrorCode.SECURITY_DISABLED
    answer = broker.ask(client, DeleteAclsRequest(filters=[DeleteAclsFilter(**every())]), 3)
    assert [each.error_code for each in answer.filter_results] == [ErrorCode.SECURITY_DISABLED]


def test_the_audit_log_tells_who_asks_for_a_change(caplog: pytest.LogCaptureFixture) -> None:
    broker, client = closed()
    with caplog.at_level(logging.INFO, "exacta.audit"):
        create(broker, client, creation())
        broker.ask(client, DeleteAclsRequest(filters=[DeleteAclsFilter(**every())]), 3)
    asked = [each.getMessage() for each in caplog.records if "asks" in each.getMessage()]
    assert asked == [f"User:ANONYMOUS asks from {client.connection.peer} to change access rules"] * 2


def test_a_rule_holds_for_the_next_request() -> None:
    broker, admin = closed()
    broker.ask(admin, MetadataRequest(topics=[MetadataRequestTopic(name="a")]), 9)
    assert create(broker, admin, creation(principal=ME, operation=DESCRIBE)) == [ErrorCode.NONE]
    assert isinstance(broker.context.authorizer, AclAuthorizer)
    broker.context.authorizer.terms = Terms()
    client = broker.connect()
    asks = MetadataRequest(topics=[MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b")])
    codes = [topic.error_code for topic in broker.ask(client, asks, 9).topics]
    assert codes.count(ErrorCode.TOPIC_AUTHORIZATION_FAILED) == 1
    answer = broker.ask(client, CreateAclsRequest(creations=[creation()]), 3)
    assert [each.error_code for each in answer.results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]


def test_rules_are_bounded_and_one_more_is_refused() -> None:
    broker, client = closed()
    limits = broker.engine._state.limits
    broker.engine._state.limits = type(limits)(max_acl_bytes=10_000)
    codes = [create(broker, client, creation(resource_name=f"t{number}"))[0] for number in range(20)]
    assert codes[-1] == ErrorCode.POLICY_VIOLATION
    assert codes.count(ErrorCode.NONE) == len(described(broker, client))


def test_long_requests_are_served_in_parts() -> None:
    broker, client = closed()
    creations = [creation(resource_name=f"t{number}") for number in range(1_200)]
    assert create(broker, client, *creations) == [ErrorCode.NONE] * 1_200
    assert len(described(broker, client)) == 1_200
    filters = [DeleteAclsFilter(**every(resource_name_filter=f"t{number}")) for number in range(MOST_FILTERS * 3 + 1)]
    answer = broker.ask(client, DeleteAclsRequest(filters=filters), 3)
    assert [[acl.resource_name for acl in each.matching_acls] for each in answer.filter_results] == [
        [f"t{number}"] for number in range(MOST_FILTERS * 3 + 1)
    ]
    too_many = [DeleteAclsFilter(**every())] * (MOST_FILTERS_IN_ALL + 1)
    answer = broker.ask(client, DeleteAclsRequest(filters=too_many), 3)
    assert {each.error_code for each in answer.filter_results} == {ErrorCode.POLICY_VIOLATION}


def test_an_address_of_ipv6_has_one_form() -> None:
    broker, client = closed()
    create(broker, client, creation(host="0:0:0:0:0:0:0:1"), creation(host="FE80::0001"), creation(host="a:name"))
    assert {each[4] for each in described(broker, client)} == {"::1", "fe80::1", "a:name"}
    assert len(described(broker, client, host_filter="0:0::0:1")) == 1


def test_an_address_of_ipv4_that_is_mapped_to_ipv6_is_written_as_connections_show_it() -> None:
    broker, client = closed()
    create(broker, client, creation(host="::ffff:10.0.0.1"), creation(host="::FFFF:a00:2"))
    assert {each[4] for each in described(broker, client)} == {"10.0.0.1", "10.0.0.2"}
    assert len(described(broker, client, host_filter="::ffff:10.0.0.2")) == 1


def test_every_word_has_kafkas_number() -> None:
    assert KINDS.keys() == {*ResourceKind}
    assert PATTERNS.keys() == {*Pattern} - {Pattern.ANY}
    assert NUMBERS.keys() == {*Operation}
    for numbers in (KINDS, PATTERNS, NUMBERS, PERMISSIONS):
        assert len({*numbers.values()}) == len(numbers)
        assert min(numbers.values()) > ANY
