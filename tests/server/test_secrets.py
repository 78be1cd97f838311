"""No secret is shown: users, passwords, tokens and keys go through a server, and all that it says is searched for them.

Clients log in, rightly and wrongly, in each way (`noisy.py`). Every API, every route and every command is asked, and
their answers are searched, with the log, the process's own words, and the files that are left.
"""

import base64
import json
import logging
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.config.options import changed, configure, options
from exacta.config.pulsar_logins import METHODS
from exacta.kafka.handlers import k51_alter_user_scram_credentials as k51
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from exacta.protocol.kafka.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from exacta.protocol.sasl.scram import ScramError
from exacta.protocol.sasl.scram_client import ScramClient
from exacta.protocol.sasl.scram_server import ScramServer
from exacta.security import logins
from exacta.server.logins import SECRET_FILE
from tests import hidden
from tests.hidden import ALL, MARK, PASSWORDS, WRONG_PASSWORD, Hidden
from tests.kafka.test_acl_requests import closed
from tests.kafka.test_logins import handshake, plain, quick_logins
from tests.kafka.wire import front
from tests.server.noisy import Noisy

SHOWS_WHAT_IT_READS = {
    ("serve",): "it is the server itself, whose words are searched",
    ("demo",): "it starts servers of its own",
    ("verify",): "the same",
    ("top",): "it is a picture of what the others tell",
    ("spark", "clean"): "it is about Spark's directories",
    ("log", "copy"): "it tells a place and a position, and keeps the secrets where they were",
    ("cluster", "accept-loss"): "it tells two positions",
    ("cluster", "wait"): "it tells nothing but that the cluster is there",
}
"""The commands that are not run, and why."""
COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("produce",): ("t",),
    ("consume",): ("t", "--exit"),
    ("cluster", "describe"): (),
    ("cluster", "status"): (),
    ("cluster", "move"): ("--to", "0"),
    ("cluster", "health"): (),
    ("cluster", "version"): (),
    ("topics", "create"): ("new",),
    ("topics", "list"): (),
    ("topics", "describe"): ("t",),
    ("topics", "alter"): ("t", "--partitions", "2"),
    ("topics", "delete"): ("new", "--yes"),
    ("topics", "trim"): ("t", "--before", "latest", "--yes"),
    ("config", "describe"): ("broker", "0", "--all"),
    ("config", "set"): ("broker", "0", f"ssl.key.password={WRONG_PASSWORD}"),
    ("config", "unset"): ("broker", "0", "log.retention.ms"),
    ("config", "check"): ("FILE",),
    ("config", "show"): ("FILE", "--changed"),
    ("config", "reference"): (),
    **{("config", name): () for name in ("unit", "sysusers", "example", "alerts", "dashboard")},
    ("groups", "list"): (),
    ("groups", "describe"): ("g",),
    ("groups", "lag"): ("g",),
    ("groups", "reset"): ("g", "--to", "earliest", "--yes"),
    ("groups", "delete"): ("g", "--yes"),
    ("subscriptions", "list"): (),
    ("subscriptions", "describe"): ("t", "s"),
    ("subscriptions", "lag"): ("t", "s"),
    ("subscriptions", "reset"): ("t", "s", "--to", "earliest", "--yes"),
    ("transactions", "list"): (),
    ("transactions", "explain"): ("t",),
    ("transactions", "abort"): ("x", "--yes"),
    ("acls", "add"): ("User:alice", "read", "--topic", "t"),
    ("acls", "list"): (),
    ("acls", "remove"): ("--principal", "User:alice", "--yes"),
    ("quotas", "list"): (),
    ("quotas", "set"): ("producer_byte_rate=1048576", "--user", "alice"),
    ("quotas", "remove"): ("--user", "alice", "--yes"),
    ("users", "add"): ("carol", "--password-env", "PASSWORD"),
    ("users", "list"): (),
    ("users", "passwd"): ("carol", "--password-file", "PASSWORD_FILE"),
    ("users", "remove"): ("carol", "--yes"),
}
WITH_A_LOGIN = (("users", "list"), ("config", "describe"), ("produce",))
"""The commands that are run once more with the properties of a client that logs in."""
OF_FILES: dict[tuple[str, ...], tuple[str, ...]] = {("log", each): () for each in ("verify", "dump", "repair")}
"""The commands that look at the files of a server that does not run."""


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisy]:
    made = Noisy(tmp_path_factory.mktemp("noisy"))
    try:
        made.make_noise()
        yield made
    finally:
        made.server.clean_up()


def all_commands(group: Any = app, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command."""
    for each in group.registered_commands:
        yield (*before, each.name or each.callback.__name__)
    for each in group.registered_groups:
        yield from all_commands(each.typer_instance, (*before, each.name))


def test_every_command_is_run_or_left_out_for_a_reason() -> None:
    assert set(all_commands()) == COMMANDS.keys() | OF_FILES.keys() | SHOWS_WHAT_IT_READS.keys()


# --- in this order: what runs, and then what is left ------------------------------------------------------------------


def test_no_answer_shows_a_secret(noisy: Noisy) -> None:
    assert len(noisy.answers) > 130
    assert [each for each in noisy.answers if ALL.found_in(each)] == []


def test_the_process_itself_shows_none(noisy: Noisy) -> None:
    for name in ("cmdline", "comm", "status", "stat", "maps"):
        assert ALL.found_in(Path(f"/proc/{noisy.pid}/{name}").read_bytes()) is None


@pytest.mark.parametrize("properties", ["", "right", "wrong"])
def test_no_command_shows_one(noisy: Noisy, properties: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", PASSWORDS["alice"])
    password = tmp_path / "password"
    password.write_text(PASSWORDS["root"] + "\n")
    config = tmp_path / "client.properties"
    config.write_text(noisy.client_properties(PASSWORDS["root"] if properties == "right" else WRONG_PASSWORD))
    words = {"FILE": str(noisy.file), "PASSWORD_FILE": str(password)}
    done = 0
    commands = COMMANDS if not properties else {each: COMMANDS[each] for each in WITH_A_LOGIN}
    for command, arguments in commands.items():
        where = ["--bootstrap-server", noisy.address(secure=bool(properties))]
        where += ["--command-config", str(config)] if properties else []
        given = [words.get(each, each) for each in arguments]
        found = CliRunner().invoke(app, [*command, *given, *(where if needs_cluster(command) else [])], input="line\n")
        assert ALL.found_in(f"{found.stdout}{found.stderr}{found.exception!r}") is None, command
        assert found.exit_code in (0, 1), (command, found.stderr)
        done += found.exit_code == 0
    assert done > {"": 25, "right": len(WITH_A_LOGIN) - 1, "wrong": -1}[properties]


def needs_cluster(command: tuple[str, ...]) -> bool:
    """Return whether a command asks a cluster."""
    return command[0] != "config" or command[1] in ("describe", "set", "unset")


def test_the_log_shows_none(noisy: Noisy) -> None:
    code, errors = noisy.end()
    assert code == 0
    assert "DEBUG" in errors
    assert errors.count("was refused") > 20
    shown = [line for line in errors.splitlines() if ALL.found_in(line)]
    assert shown == []
    assert ALL.found_in(noisy.server.ready_line) is None


def test_no_dump_shows_one(noisy: Noisy) -> None:
    noisy.end()
    for command, arguments in OF_FILES.items():
        found = CliRunner().invoke(app, [*command, *arguments, "--data", str(noisy.data)])
        assert found.exit_code == 0, found.stderr
        assert ALL.found_in(f"{found.stdout}{found.stderr}{found.exception!r}") is None, command
        if command == ("log", "dump"):
            assert "ScramKeysSet" in found.stdout
            assert "(hidden)" in found.stdout


def test_the_files_are_the_owners_alone_and_hold_no_password(noisy: Noisy) -> None:
    """The journal and the snapshots hold the keys of SCRAM, and nothing by which one could log in."""
    noisy.end()
    made = [noisy.data, *noisy.data.rglob("*")]
    assert {each.name for each in made} >= {SECRET_FILE}
    assert any("snapshot" in str(each) for each in made)
    clear = Hidden(
        [MARK, *PASSWORDS.values(), hidden.TOKEN_SECRET, *(hidden.kept_of(each)[0] for each in PASSWORDS.values())]
    )
    for each in made:
        mode = stat.S_IMODE(each.lstat().st_mode)
        assert mode == (0o700 if each.is_dir() else 0o600), (each, oct(mode))
        assert each.is_dir() or clear.found_in(each.read_bytes()) is None, each


# --- errors of ours ---------------------------------------------------------------------------------------------------


def fails(*_: Any, **__: Any) -> Any:
    """Fail as a bug would."""
    raise ZeroDivisionError("a bug")


@pytest.mark.parametrize(
    ("holder", "name"),
    [(ScramServer, "final"), (ScramServer, "first"), (logins, "salted_password"), (logins, "keys_from_salted")],
)
def test_no_traceback_of_a_login_shows_one(
    holder: Any, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with front(logins=quick_logins) as broker:
        monkeypatch.setattr(holder, name, fails)
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            wire = broker.connect()
            handshake(wire, mechanism)
            client = ScramClient("sha256", "alice", PASSWORDS["alice"])
            first = plain(password=PASSWORDS["alice"]).auth_bytes if mechanism == "PLAIN" else client.first()
            with suppress(OSError, ScramError):
                answer = wire.ask(SaslAuthenticateRequest(auth_bytes=first), 2)
                wire.ask(SaslAuthenticateRequest(auth_bytes=client.final(bytes(answer.auth_bytes))), 2)
    assert "ZeroDivisionError" in caplog.text
    assert ALL.found_in(caplog.text) is None


@pytest.mark.parametrize("name", ["kept_key", "submit"])
def test_no_traceback_of_a_change_of_a_user_shows_one(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    broker, client = closed()
    monkeypatch.setattr(k51 if name == "kept_key" else broker.engine, name, fails)
    salted = hidden.kept_of(PASSWORDS["alice"])[0]
    request = AlterUserScramCredentialsRequest(
        upsertions=[
            ScramCredentialUpsertion(
                name="alice", mechanism=1, iterations=hidden.ITERATIONS, salt=hidden.SALT, salted_password=salted
            )
        ]
    )
    client.send(request, 0)
    broker.settle()
    assert "ZeroDivisionError" in caplog.text
    assert ALL.found_in(caplog.text) is None


def test_no_repr_of_an_option_shows_one() -> None:
    given = {each.name: f"{MARK}-{each.name}" for each in options().values() if each.is_secret}
    given |= {"authenticationEnabled": "true", "authenticationProviders": next(iter(METHODS))}
    configuration = configure(given)
    shown = (repr(configuration), str(configuration), repr(changed(configuration)), repr(options()))
    assert [each for each in shown if ALL.found_in(each)] == []
    assert all(getattr(configuration, options()[name].field) for name in given)


def test_the_search_finds_each_form_of_a_secret() -> None:
    for kept in hidden.kept_of(PASSWORDS["alice"]):
        for shown in (repr(kept), kept.hex(), json.dumps(list(kept)), base64.b64encode(kept).decode(), kept):
            assert ALL.found_in(shown), shown
    assert ALL.found_in(f"password={WRONG_PASSWORD}!")
    assert ALL.found_in("nothing") is None
