"""`exacta users …`: the users that log in by SCRAM. On any Kafka cluster. No password stands on the command line."""

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, CommandConfig, Servers, client_of, fail
from exacta.cli.confirmation import Yes, require_consent
from exacta.cli.lines import say
from exacta.cli.output import Output, OutputFormat, print_records
from exacta.protocol.kafka.scram_numbers import MECHANISMS

if TYPE_CHECKING:
    from exacta.client.routing import Client

_CLIENT_ID = "exacta-users"

users = typer.Typer(help="Look after users and their passwords.", no_args_is_help=True)


Mechanism = Enum("Mechanism", {each: each for each in MECHANISMS})  # type: ignore[misc]
USUAL = Mechanism("SCRAM-SHA-512")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name, as alice.")]
PasswordFile = Annotated[
    Path | None, typer.Option("--password-file", metavar="FILE", help="A file whose first line is the password.")
]
PasswordVariable = Annotated[
    str | None, typer.Option("--password-env", metavar="VARIABLE", help="The environment variable with the password.")
]


@users.callback()
def root() -> None:
    """Look after users and their passwords."""


@users.command()
def add(
    name: Name,
    mechanism: Annotated[
        Mechanism, typer.Option("--mechanism", case_sensitive=False, help="The mechanism by which the user logs in.")
    ] = USUAL,
    password_file: PasswordFile = None,
    password_env: PasswordVariable = None,
    first_user_token: Annotated[
        Path | None,
        typer.Option(
            "--first-user-token",
            metavar="FILE",
            help="Make the first user, who may do everything, by the token in this file: a start that nobody could log "
            "in after says where it is.",
        ),
    ] = None,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Make a user, whose password is asked for, or comes from a file or the environment.

    Exit code 1 if the user logs in by this mechanism already.
    """
    from exacta.client.users import list_users, set_password
    from exacta.security.first_user import FIRST_USER

    login = None if first_user_token is None else (FIRST_USER.name, _line_of(first_user_token))
    with client_of(bootstrap_servers, command_config, _CLIENT_ID, login=login) as client:
        if mechanism.value in dict(list_users(client).get(name, [])):
            fail(f"user {name} logs in by {mechanism.value} already: exacta users passwd changes the password", EXIT_NO)
        set_password(client, name, _password(password_file, password_env), mechanism.value)
    say(f"user {name} logs in by {mechanism.value}")


@users.command("list")
def list_all(
    output: Output = OutputFormat.TABLE, bootstrap_servers: Servers = None, command_config: CommandConfig = None
) -> None:
    """Show the users, and by which mechanisms they log in."""
    from exacta.client.users import list_users

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = list_users(client)
    records = [
        {"user": user, "mechanism": mechanism, "iterations": iterations}
        for user, keys in found.items()
        for mechanism, iterations in keys
    ]
    print_records(records, output, nothing="there are no users")


@users.command()
def passwd(
    name: Name,
    password_file: PasswordFile = None,
    password_env: PasswordVariable = None,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Change a user's password, for every mechanism by which the user logs in.

    Exit code 1 if there is no such user.
    """
    from exacta.client.users import set_password

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        mechanisms = _mechanisms(client, name)
        password = _password(password_file, password_env)
        set_password(client, name, password, *mechanisms)
    say(f"user {name} has another password")


@users.command()
def remove(
    name: Name, yes: Yes = False, bootstrap_servers: Servers = None, command_config: CommandConfig = None
) -> None:
    """Delete a user.

    Exit code 1 if there is no such user.
    """
    from exacta.client.users import remove_user

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        mechanisms = _mechanisms(client, name)
        require_consent(f"Delete user {name}?", yes=yes)
        remove_user(client, name, mechanisms)
    say(f"user {name} is deleted")


def _mechanisms(client: "Client", name: str) -> list[str]:
    from exacta.client.users import list_users

    found = list_users(client).get(name)
    if not found:
        fail(f"there is no user {name}", EXIT_NO)
    return [mechanism for mechanism, _ in found]


def _password(file: Path | None, variable: str | None) -> str:
    """Return the password: of a file, of the environment, or as somebody types it twice."""
    if file is not None and variable is not None:
        fail("give only one of --password-file and --password-env", EXIT_USAGE)
    if file is not None:
        password = _line_of(file)
    elif variable is not None:
        password = os.environ.get(variable, "")
    else:
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    if not password:
        fail("the password is empty", EXIT_USAGE)
    return password


def _line_of(file: Path) -> str:
    """Return the first line of a file, which holds a secret."""
    try:
        return file.read_text().partition("\n")[0]
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}", EXIT_USAGE)
