"""The options of a log that several brokers share: what goes together, and what a user is told who gets it wrong."""

from typing import Any

import pytest

from exacta.cli.serve import run
from exacta.config.errors import ConfigurationError
from exacta.config.options import configure

POSTGRES = "postgresql://exacta@127.0.0.1/exacta"


def test_over_postgresql_every_write_is_durable_before_it_is_acknowledged() -> None:
    assert configure({"postgres": POSTGRES}).transaction_sync_every_write
    assert not configure({}).transaction_sync_every_write


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objects": "s3://bucket/log"}, "objects is for a log in PostgreSQL: name that by postgres too"),
        ({"postgres.schema": "second"}, "postgres.schema is for a log in PostgreSQL: name that by postgres too"),
        (
            {"postgres": POSTGRES, "transaction.sync.every.write": "false"},
            "transaction.sync.every.write=false is for a log in the data directory: over PostgreSQL every write is "
            "durable before it is acknowledged; leave it out",
        ),
        ({"postgres": POSTGRES, "postgres.schema": "a;b"}, "postgres.schema cannot be 'a;b': it is like exacta"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        configure(settings)
    assert str(refused.value) == message


@pytest.mark.parametrize("flag", ["--postgres", "--objects", "--node-id"])
def test_a_flag_without_a_value_is_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([flag, " "]) == 2
    assert capsys.readouterr().err == (
        f"exacta: argument {flag}: expected a value, not an empty one (exacta serve --help shows how)\n"
    )


def test_a_flag_is_the_option_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--objects", "s3://bucket/log"]) == 2
    assert capsys.readouterr().err == "exacta: objects is for a log in PostgreSQL: name that by postgres too\n"
    assert run(["--node-id", "many"]) == 2
    assert capsys.readouterr().err == "exacta: node.id must be a whole number, not 'many'\n"


@pytest.mark.parametrize(
    ("options", "beginning"),
    [
        ({"postgres": "postgresql://exacta:secret@127.0.0.1/exacta"}, "postgres holds a password"),
        ({"postgres": "postgresql://exacta@db.example/exacta?sslmode=disable"}, "postgres asks for sslmode=disable"),
        ({"postgres": POSTGRES, "objects": "file:///tmp"}, "objects names files"),
    ],
)
def test_addresses_are_judged_with_the_options(options: dict[str, Any], beginning: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{beginning}") as refused:
        configure(options)
    assert "secret" not in str(refused.value)
