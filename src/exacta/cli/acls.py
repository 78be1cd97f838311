"""`exacta acls …`: the access rules of a cluster. On any Kafka cluster that has an authorizer."""

from enum import Enum
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated

import typer

from exacta.cli.cluster import EXIT_USAGE, CommandConfig, Servers, client_of, fail
from exacta.cli.confirmation import OnlyShow, Yes, require_consent
from exacta.cli.lines import counted, say
from exacta.cli.output import Output, OutputFormat, print_records
from exacta.protocol.kafka.acl_numbers import OPERATIONS

if TYPE_CHECKING:
    from exacta.client.access_rules import AccessRule, Wanted

_CLIENT_ID = "exacta-acls"
_CLUSTER = "kafka-cluster"

acls = typer.Typer(help="Look after access rules.", no_args_is_help=True)

Operation = Enum("Operation", {each: each for each in OPERATIONS})  # type: ignore[misc]

Topic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="The topic, or * for all.")]
Group = Annotated[str | None, typer.Option("--group", metavar="NAME", help="The consumer group, or * for all.")]
Transactional = Annotated[
    str | None, typer.Option("--transactional-id", metavar="NAME", help="The transactional id, or * for all.")
]
OfCluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
Prefixed = Annotated[bool, typer.Option("--prefixed", help="The name is a prefix of names.")]
Deny = Annotated[bool, typer.Option("--deny", help="Rules that deny, and not those that allow.")]
Principal = Annotated[str | None, typer.Option("--principal", metavar="USER", help="Rules for this principal only.")]


@acls.callback()
def root() -> None:
    """Look after access rules."""


@acls.command()
def add(
    principal: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="Whom it is about, as User:alice or User:*.")],
    operations: Annotated[
        list[Operation],
        typer.Argument(metavar="OPERATION...", case_sensitive=False, help="What it may do: one or more words."),
    ],
    topic: Topic = None,
    group: Group = None,
    transactional_id: Transactional = None,
    cluster: OfCluster = False,
    prefixed: Prefixed = False,
    deny: Deny = False,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="From this address only.")] = "*",
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Allow a principal to do something with a resource, or deny it.

    An operation is one of Kafka's: Read, Write, Create, Delete, Alter, Describe, ClusterAction, DescribeConfigs,
    AlterConfigs, IdempotentWrite, TwoPhaseCommit, All. A rule that is there already stays as it is.
    """
    from exacta.client.access_rules import AccessRule, add_rules

    resource, name = _resource(topic, group, transactional_id, cluster)
    if resource is None or name is None:
        fail("give --topic, --group, --transactional-id or --cluster", EXIT_USAGE)
    problem = _would_never_apply(principal, topic, host)
    if problem is not None:
        fail(problem, EXIT_USAGE)
    permission, pattern = "Deny" if deny else "Allow", "Prefixed" if prefixed else "Literal"
    rules = [AccessRule(principal, permission, each.value, resource, pattern, name, host) for each in operations]
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        add_rules(client, rules)
    for each in rules:
        say(_in_words(each))


def _would_never_apply(principal: str, topic: str | None, host: str) -> str | None:
    """Say why a rule would be made that is about nothing; None: it may be about something."""
    if principal.lower().startswith("user:") and not principal.startswith("User:"):
        return f"{principal} is nobody: principals begin with User:"
    if topic is not None and topic != "*" and "*" in topic:
        return f"no topic is named {topic}: --prefixed makes a rule for all names that begin so, without the *"
    if host != "*":
        try:
            ip_address(host)
        except ValueError:
            return f"--host takes an address, as 10.0.0.1, and not {host}"
    return None


@acls.command("list")
def list_all(
    topic: Topic = None,
    group: Group = None,
    transactional_id: Transactional = None,
    cluster: OfCluster = False,
    prefixed: Prefixed = False,
    principal: Principal = None,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show the access rules: all of them, or those for one resource or principal."""
    from exacta.client.access_rules import list_rules

    wanted = _wanted(topic, group, transactional_id, cluster, prefixed, principal)
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = list_rules(client, wanted)
    print_records([each._asdict() for each in found], output, nothing="there are no access rules")


@acls.command()
def remove(
    topic: Topic = None,
    group: Group = None,
    transactional_id: Transactional = None,
    cluster: OfCluster = False,
    prefixed: Prefixed = False,
    principal: Principal = None,
    dry_run: OnlyShow = False,
    yes: Yes = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Delete the access rules for one resource, for one principal, or for both."""
    from exacta.client.access_rules import list_rules, remove_rules

    wanted = _wanted(topic, group, transactional_id, cluster, prefixed, principal)
    if wanted.resource is None and principal is None:
        fail("give --topic, --group, --transactional-id, --cluster or --principal", EXIT_USAGE)
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = list_rules(client, wanted)
        for each in found:
            say(_in_words(each))
        if not found:
            say("there are no such access rules")
        elif not dry_run:
            require_consent(f"Delete {counted(len(found), 'rule')}?", yes=yes)
            say(f"{counted(len(remove_rules(client, wanted)), 'rule')} deleted")


def _resource(
    topic: str | None, group: str | None, transactional_id: str | None, cluster: bool
) -> tuple[str | None, str | None]:
    given = [("Topic", topic), ("Group", group), ("TransactionalId", transactional_id)]
    found = [(kind, name) for kind, name in given if name is not None] + [("Cluster", _CLUSTER)] * cluster
    if len(found) > 1:
        fail("give only one of --topic, --group, --transactional-id and --cluster", EXIT_USAGE)
    return found[0] if found else (None, None)


def _wanted(
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    cluster: bool,
    prefixed: bool,
    principal: str | None,
) -> "Wanted":
    from exacta.client.access_rules import Wanted

    resource, name = _resource(topic, group, transactional_id, cluster)
    pattern = None if resource is None else "Prefixed" if prefixed else "Literal"
    return Wanted(principal=principal, resource=resource, name=name, pattern=pattern)


def _in_words(rule: "AccessRule") -> str:
    verb = "may" if rule.permission == "Allow" else "may not"
    where = "" if rule.host == "*" else f" from {rule.host}"
    named = f"{rule.name}…" if rule.pattern == "Prefixed" else rule.name
    return f"{rule.principal} {verb} {rule.operation} {rule.resource} {named}{where}"
