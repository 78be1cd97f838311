"""`exacta quotas …`: the quotas of users, clients and addresses. On any Kafka cluster."""

from typing import Annotated

import typer

from exacta.cli.cluster import EXIT_USAGE, CommandConfig, Servers, client_of, fail
from exacta.cli.confirmation import Yes, require_consent
from exacta.cli.lines import say
from exacta.cli.output import Output, OutputFormat, print_records

_CLIENT_ID = "exacta-quotas"
_DEFAULT = "<default>"
_NAMES = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_OF_ADDRESSES = ("connection_creation_rate",)

quotas = typer.Typer(help="Look after quotas: how much users, clients and addresses may use.", no_args_is_help=True)

User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="The user, as alice; <default> is any other.")]
ClientId = Annotated[
    str | None, typer.Option("--client-id", metavar="ID", help="The client id; <default> is any other.")
]
Ip = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="The address; <default> is any other.")]
Values = Annotated[list[str], typer.Argument(metavar="NAME=VALUE…", help="As producer_byte_rate=1048576.")]


@quotas.callback()
def root() -> None:
    """Look after quotas: how much users, clients and addresses may use."""


@quotas.command("set")
def set_values(
    values: Values,
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Set quotas of a user, of a client id, of both together, or of an address; others that it has stay."""
    from exacta.client.quotas import alter_quotas

    entity, parsed = _entity(user, client_id, ip), _parsed(values)
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        alter_quotas(client, entity, parsed)
    say(f"{_words(entity)}: {', '.join(f'{name}={value:g}' for name, value in parsed.items())}")


@quotas.command("list")
def list_all(
    output: Output = OutputFormat.TABLE, bootstrap_servers: Servers = None, command_config: CommandConfig = None
) -> None:
    """Show who has which quotas."""
    from exacta.client.quotas import list_quotas

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = list_quotas(client)
    records = [
        {
            **{kind: _DEFAULT if kind in entity and entity[kind] is None else entity.get(kind) for kind in _KINDS},
            "quota": name,
            "value": value,
        }
        for entity, values in found
        for name, value in values.items()
    ]
    print_records(records, output, nothing="there are no quotas")


@quotas.command()
def remove(
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    yes: Yes = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Remove all quotas of a user, of a client id, of both together, or of an address, if it has any."""
    from exacta.client.quotas import alter_quotas

    entity = _entity(user, client_id, ip)
    require_consent(f"Remove the quotas of {_words(entity)}?", yes=yes)
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        alter_quotas(client, entity, dict.fromkeys(_OF_ADDRESSES if "ip" in entity else _NAMES))
    say(f"{_words(entity)} has no quotas")


_KINDS = ("user", "client-id", "ip")


def _entity(user: str | None, client_id: str | None, ip: str | None) -> dict[str, str | None]:
    given = {kind: name for kind, name in zip(_KINDS, (user, client_id, ip), strict=True) if name is not None}
    if not given:
        fail("say whose quotas: --user, --client-id or both, or --ip", EXIT_USAGE)
    if "ip" in given and len(given) > 1:
        fail("--ip stands for itself: an address has no user and no client id", EXIT_USAGE)
    return {kind: None if name == _DEFAULT else name for kind, name in given.items()}


def _parsed(values: list[str]) -> dict[str, float]:
    parsed: dict[str, float] = {}
    for each in values:
        name, _, text = each.partition("=")
        if name not in (*_NAMES, *_OF_ADDRESSES):
            fail(f"there is no quota {name}: they are {', '.join((*_NAMES, *_OF_ADDRESSES))}", EXIT_USAGE)
        try:
            parsed[name] = float(text)
        except ValueError:
            fail(f"expected {name}=NUMBER, not {each}", EXIT_USAGE)
    return parsed


def _words(entity: dict[str, str | None]) -> str:
    return " and ".join(f"{kind} {_DEFAULT if name is None else name}" for kind, name in entity.items())
