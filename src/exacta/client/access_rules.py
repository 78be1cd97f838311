"""Make, list and delete access rules, as an administrator does (KIP-140, KIP-290).

A rule is told by Kafka's words. A word that this version does not know is told as its number.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from exacta.client.routing import Anyone, Client, Controller
from exacta.client.topic_administration import ask
from exacta.protocol.kafka.acl_numbers import ANY, OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES
from exacta.protocol.kafka.messages.k29_describe_acls import DescribeAclsRequest
from exacta.protocol.kafka.messages.k30_create_acls import AclCreation, CreateAclsRequest
from exacta.protocol.kafka.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest


class AccessRule(NamedTuple):
    """One access rule, in Kafka's words."""

    principal: str
    permission: str
    operation: str
    resource: str
    pattern: str
    name: str
    host: str


class Wanted(NamedTuple):
    """The rules that have all of this; None is any."""

    principal: str | None = None
    permission: str | None = None
    operation: str | None = None
    resource: str | None = None
    pattern: str | None = None
    name: str | None = None
    host: str | None = None


def add_rules(client: Client, rules: Iterable[AccessRule]) -> None:
    """Make rules; one that is there stays. Raises `KafkaError` for the first that the cluster refuses."""
    creations = [
        AclCreation(
            resource_type=RESOURCE_TYPES[each.resource],
            resource_name=each.name,
            resource_pattern_type=PATTERN_TYPES[each.pattern],
            principal=each.principal,
            host=each.host,
            operation=OPERATIONS[each.operation],
            permission_type=PERMISSIONS[each.permission],
        )
        for each in rules
    ]
    request = CreateAclsRequest(creations=creations)
    ask(client, Controller(), request, what="making access rules", entries=lambda reply: reply.results)


def list_rules(client: Client, wanted: Wanted) -> list[AccessRule]:
    """Return the rules that have all that is wanted, in the order of their resources and principals."""
    request = DescribeAclsRequest(**_filter(wanted))
    reply = ask(client, Anyone(), request, what="listing access rules", entries=lambda reply: [reply])
    return sorted(
        _rule(each.resource_type, each.pattern_type, each.resource_name, acl)
        for each in reply.resources
        for acl in each.acls
    )


def remove_rules(client: Client, wanted: Wanted) -> list[AccessRule]:
    """Delete the rules that have all that is wanted; return them."""
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**_filter(wanted))])
    reply = ask(client, Controller(), request, what="deleting access rules", entries=lambda reply: reply.filter_results)
    return sorted(
        _rule(each.resource_type, each.pattern_type, each.resource_name, each)
        for result in reply.filter_results
        for each in result.matching_acls
    )


def _filter(wanted: Wanted) -> dict[str, Any]:
    return {
        "resource_type_filter": _number(RESOURCE_TYPES, wanted.resource),
        "resource_name_filter": wanted.name,
        "pattern_type_filter": _number(PATTERN_TYPES, wanted.pattern),
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": _number(OPERATIONS, wanted.operation),
        "permission_type": _number(PERMISSIONS, wanted.permission),
    }


def _number(numbers: Mapping[str, int], word: str | None) -> int:
    return ANY if word is None else numbers[word]


def _word(numbers: Mapping[str, int], number: int) -> str:
    return next((word for word, each in numbers.items() if each == number), str(number))


def _rule(resource_type: int, pattern_type: int, name: str, acl: Any) -> AccessRule:
    return AccessRule(
        principal=acl.principal,
        permission=_word(PERMISSIONS, acl.permission_type),
        operation=_word(OPERATIONS, acl.operation),
        resource=_word(RESOURCE_TYPES, resource_type),
        pattern=_word(PATTERN_TYPES, pattern_type),
        name=name,
        host=acl.host,
    )
