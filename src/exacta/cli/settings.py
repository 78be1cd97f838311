"""`exacta config describe|set|unset`: settings of topics, brokers and groups, on any Kafka cluster.

Also how other commands take settings.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from exacta.cli.cluster import EXIT_USAGE, CommandConfig, Servers, client_of, fail, no_topic
from exacta.cli.lines import say
from exacta.cli.output import Output, OutputFormat, print_records

if TYPE_CHECKING:
    from exacta.client.configs import Resource

_CLIENT_ID = "exacta-config"
_ALL_BROKERS = "default"


class Kind(StrEnum):
    """Name what has settings."""

    TOPIC = "topic"
    BROKER = "broker"
    BROKER_LOGGER = "broker-logger"
    GROUP = "group"


KindOf = Annotated[Kind, typer.Argument(metavar="KIND", help="topic, broker, broker-logger or group.")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The name of the topic or group; the id of a broker, or `default` for what applies to all brokers.",
    ),
]
Setting = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Choose a setting; may be repeated.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Let the cluster check it, and change nothing.")]


def describe(
    kind: KindOf,
    name: Name,
    everything: Annotated[bool, typer.Option("--all", help="Show the defaults, too.")] = False,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show the settings that somebody has chosen, and where; with --all the defaults, too."""
    from exacta.client.configs import describe_settings
    from exacta.client.errors import KafkaError
    from exacta.protocol.kafka.errors import ErrorCode

    resource = _resource(kind, name)
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        try:
            found = describe_settings(client, resource)
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            no_topic(client, name)
    records = [
        {
            "setting": each.name,
            "value": "(secret)" if each.is_sensitive and each.value is None else each.value,
            "from": each.source,
            "read_only": each.is_read_only,
        }
        for each in found
        if everything or not each.is_default
    ]
    print_records(
        records, output, nothing=f"{resource} {_verb(resource, dry_run=False)} the defaults (--all shows them)"
    )


def set_them(
    kind: KindOf,
    name: Name,
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE", help="The settings, with their values.")],
    dry_run: DryRun = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Choose settings: all of them, or none if the cluster refuses one."""
    from exacta.client.configs import change_settings

    resource, given = _resource(kind, name), settings_in(settings, "KEY=VALUE")
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        change_settings(client, resource, given, dry_run=dry_run)
    say(f"{resource} {_verb(resource, dry_run=dry_run)} {', '.join(f'{key}={given[key]}' for key in given)}")


def unset_them(
    kind: KindOf,
    name: Name,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="The settings' names.")],
    dry_run: DryRun = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Give settings their defaults again: all of them, or none if the cluster refuses one."""
    from exacta.client.configs import change_settings

    resource = _resource(kind, name)
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        change_settings(client, resource, {}, keys, dry_run=dry_run)
    say(f"{resource} {_verb(resource, dry_run=dry_run)} the defaults of {', '.join(keys)}")


def _verb(resource: "Resource", *, dry_run: bool) -> str:
    if dry_run:
        return "could have"
    return "has" if resource.name else "have"


def settings_in(given: Sequence[str], option: str) -> dict[str, str]:
    """Return the settings of `KEY=VALUE` arguments; end the command where one is none."""
    found: dict[str, str] = {}
    for each in given:
        key, separator, value = each.partition("=")
        if not separator or not key.strip():
            fail(f"{option}: '{each}' is not KEY=VALUE", EXIT_USAGE)
        found[key.strip()] = value
    return found


def _resource(kind: Kind, name: str) -> "Resource":
    from exacta.client.configs import Resource

    if kind is Kind.BROKER and name == _ALL_BROKERS:
        return Resource(kind, "")
    if kind in (Kind.BROKER, Kind.BROKER_LOGGER) and not (name.isascii() and name.isdigit() and len(name) < 10):
        fail(f"'{name}' is no id of a broker", EXIT_USAGE)
    if not name:
        fail(f"the name of a {kind} is not empty", EXIT_USAGE)
    return Resource(kind, name)
